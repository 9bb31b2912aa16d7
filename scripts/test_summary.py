#!/usr/bin/env python3
"""scripts/test_summary.py FOLDER: sums up the results that ctest (ctest.xml) and the test programs left there.

Ends with the line 'N passed, N failed, N skipped'; the exit status is 1 if a test failed or none ran.
A program that ended badly without naming a failed test (a crash, a time-out) counts as one failed test.
"""
import collections
import pathlib
import sys
import xml.etree.ElementTree as ElementTree


def cases_of_program(path):
    """(name, state, reason) of every test that a GoogleTest program reports."""
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        name = f"{case.get('classname')}.{case.get('name')}"
        skipped = case.find("skipped")
        if case.find("failure") is not None:
            yield name, "failed", ""
        elif skipped is not None or case.get("result") == "skipped":
            # GoogleTest puts the file and line before the reason.
            message = (skipped.get("message") or "" if skipped is not None else "").strip()
            yield name, "skipped", message.splitlines()[-1] if message else "no reason given"
        elif case.get("status", "run") == "run":
            yield name, "passed", ""


def state_of_entry(entry):
    if entry.find("skipped") is not None or entry.get("status") in ("notrun", "disabled"):
        output = (entry.findtext("system-out") or "").strip()
        return "skipped", output.splitlines()[-1] if output else "not run"
    return ("passed", "") if entry.get("status") == "run" else ("failed", "")


def cases_of_entry(folder, entry):
    """Tests of one entry of ctest: those its program reported, or the entry itself."""
    name = entry.get("name")
    state, reason = state_of_entry(entry)
    report = folder / (name.replace("/", "_") + ".xml")
    cases = []
    if report.exists():
        try:
            cases = [(f"{name}: {case}", case_state, why) for case, case_state, why in cases_of_program(report)]
        except ElementTree.ParseError:
            state = "failed"
    if not cases or (state == "failed" and all(case[1] != "failed" for case in cases)):
        cases.append((f"{name} (the program as a whole)" if state == "failed" else name, state, reason))
    return cases


def main():
    folder = pathlib.Path(sys.argv[1])
    cases = []
    if (folder / "ctest.xml").exists():
        for entry in ElementTree.parse(folder / "ctest.xml").getroot().iter("testcase"):
            cases += cases_of_entry(folder, entry)
    count = collections.Counter(state for _, state, _ in cases)
    print()
    for reason, number in collections.Counter(why for _, state, why in cases if state == "skipped").most_common():
        print(f"skipped {number}: {reason}")
    for name, state, _ in cases:
        if state == "failed":
            print(f"failed: {name}")
    print(f"{count['passed']} passed, {count['failed']} failed, {count['skipped']} skipped")
    return 1 if count["failed"] or not count["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
