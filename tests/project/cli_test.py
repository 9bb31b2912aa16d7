#!/usr/bin/env python3
"""The command line as a person meets it: answers that a program can read, and mistakes that end with status 2, one
clear line on standard error, and nothing written.

usage: cli_test.py RUSSET
"""
import json
import os
import pathlib
import struct
import subprocess
import sys
import unittest

import event_files
import pages
from cases import SIZES, Case, floats, integers, png, read_safetensors, safetensors, torch_file

MODELS = ["mlp", "lenet5", "alexnet", "vgg16", "resnet18", "resnet18_cifar", "resnet50", "efficientnet_b0",
          "efficientnet_b4", "convmixer_768_32", "vit_b_16", "simclr_resnet18", "bert_base", "bert_base_mlm"]
SMALL = ["--data", "shapes", "--holdout", "0.98", "--batch", "16"]


class Help(Case):
    def test_every_command_has_help(self):
        for command in ([], ["train"], ["eval"], ["predict"], ["convert"], ["tokenize"], ["bench"], ["plan"], ["profile"],
                        ["devices"], ["ops"]):
            self.assertIn("--help", self.good(*command, "--help"))

    def test_version(self):
        self.assertRegex(self.good("--version"), r"^russet \d+\.\d+\.\d+\n$")

    def test_devices(self):
        devices = {line["device"]: line for line in self.lines("devices")}
        self.assertTrue(devices["cpu"]["available"])
        self.assertIn("float32", devices["cpu"]["types"])
        for device in devices.values():
            self.assertTrue(device["available"] or device["reason"])

    def test_ops(self):
        operators = {line["name"]: line for line in self.lines("ops")}
        self.assertTrue(operators["matmul"]["devices"]["cpu"]["native"])
        self.assertGreater(len(operators), 50)
        self.assertIn("float32", self.good("ops", "add", "--device", "cpu"))

    def test_plan_runs_nothing_and_counts(self):
        (line,) = self.lines("plan", "mlp", "--batch", "1024")
        # 1024-512-256-10, forward and backward without the gradient of the input: two operations a multiply-add.
        products = 1024 * 2 * (3 * (512 * 256 + 256 * 10) + 2 * 1024 * 512)
        self.assertGreaterEqual(line["operations"], products)
        self.assertLess(line["operations"], products * 1.05)
        weights = 4 * (1024 * 512 + 512 + 512 * 256 + 256 + 256 * 10 + 10)
        self.assertGreater(line["peak_bytes"], 2 * weights + 4 * 1024 * 1024)
        (larger,) = self.lines("plan", "mlp", "--batch", "2048")
        self.assertGreater(larger["peak_bytes"], line["peak_bytes"])

    def test_plans_for_chips_that_are_not_here(self):
        plans = {chip: self.good("plan", "lenet5", "--device", "mps", "--chip", chip) for chip in ("m1", "m3-max")}
        for chip, text in plans.items():
            self.assertIn(f"A model of {chip}", text)
            self.assertIn("tiles", text)  # products of our own
        (line,) = self.lines("plan", "lenet5", "--device", "mps")
        self.assertGreater(line["launches"], 0)
        self.mistake("plan", "lenet5", "--device", "mps", "--chip", "z80", says="m3-max")
        self.mistake("plan", "lenet5", "--device", "mps", "--chip", "h200", says="m3-max")
        plans = {chip: self.good("plan", "resnet18_cifar", "--device", "cuda", "--chip", chip) for chip in ("a100", "h200")}
        for chip, text in plans.items():
            self.assertIn(f"A model of {chip}", text)
            self.assertIn("cudnn", text)
        self.assertNotEqual(plans["a100"], plans["h200"])
        # Of eight products three are of little work, and three are our own where warpgroups multiply.
        for chip, of_library in ("a100", 5), ("h200", 2):
            (line, *_) = self.lines("plan", "mlp", "--device", "cuda", "--batch", "1024", "--chip", chip)
            self.assertEqual(line["kernels"]["cublaslt"], of_library, chip)
        self.mistake("plan", "lenet5", "--device", "cuda", "--chip", "m1", says="h200")
        self.mistake("plan", "lenet5", "--chip", "m1", says="mps")
        self.mistake("plan", "lenet5", "--device", "abacus", says="abacus")


class Tokenize(Case):
    def test_a_line_in_a_line_of_ids_out(self):
        vocab = self.write("vocab.txt", b"[UNK]\n[CLS]\n[SEP]\nwhat\nis\n##s\n?\n")
        text = "What is?\n\nWHATS it"
        self.assertEqual(self.good("tokenize", "--vocab", vocab, text=text), "1 3 4 6 2\n1 2\n1 3 5 0 2\n")
        self.assertEqual(self.good("tokenize", "--vocab", vocab, "--no-special-tokens", text=text), "3 4 6\n\n3 5 0\n")
        self.assertEqual(self.good("tokenize", "--vocab", vocab, "--no-lowercase", text=text), "1 0 4 6 2\n1 2\n1 0 0 2\n")
        self.assertEqual(self.good("tokenize", "--vocab", vocab, "--max-length", 3, text=text), "1 3 2\n1 2\n1 3 2\n")

    def test_mistakes(self):
        self.mistake("tokenize", says="--vocab")
        self.mistake("tokenize", "--vocab", "nowhere.json", says="nowhere.json")
        self.mistake("tokenize", "--vocab", self.write("vocab.txt", b"[UNK]\n[UNK]\n"), says=["line 2", "twice"])
        self.mistake("tokenize", "--vocab", self.write("tokenizer.json", b"{}"), says="model")
        self.mistake("tokenize", "--vocab", "tokenizer.json", "--no-lowercase", says="vocab.txt")
        self.mistake("tokenize", "--vocab", "vocab.txt", "--max-length", "-1", says="--max-length")


class Text(Case):
    """Questions whose class one word tells: a small BERT learns them. At larger rates it may stay for long where it takes
    two of the words for one."""
    VOCAB = "[PAD] [UNK] [CLS] [SEP] [MASK] when where who did he go she come ?".split()
    MODEL = ["bert_base", "--vocab", "vocab.txt"]
    SIZES = {"vocab_size": 14, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
             "intermediate_size": 64, "max_position_embeddings": 16}

    def setUp(self):
        super().setUp()
        self.write("vocab.txt", "\n".join(self.VOCAB).encode())
        self.write("config.json", json.dumps({"model_type": "bert", "hidden_act": "gelu", **self.SIZES}).encode())
        lines = [f"{label} {word} did {who} {what} ?" for label, word in
                 (("NUM:date", "When"), ("LOC:city", "Where"), ("HUM:ind", "Who"))
                 for who in ("he", "she", "he she") for what in ("go", "come", "go come go come go come")]
        self.write("train.label", "\n".join(lines).encode())

    def train(self, *options, out="run"):
        return self.lines("train", *self.MODEL, "--data", "trec:train.label", "--config", "config.json", "--batch", "8",
                          "--lr", "0.001", "--warmup", "20", "--dropout", "0", *options, "--out", out)

    def test_train_eval_predict(self):
        *_, end = self.train("--test", "train.label", "--epochs", "80")
        self.assertGreater(end["accuracy"], 0.9)
        weights = ["--weights", "run/model.safetensors"]
        (score,) = self.lines("eval", *self.MODEL, "--data", "trec:train.label", *weights)
        self.assertEqual(score["accuracy"], end["accuracy"])
        (when, where) = self.lines("predict", *self.MODEL, *weights, "--text", "WHEN did she go?", "where he come")
        self.assertEqual((when["class"], where["class"], when["text"]), ("NUM", "LOC", "WHEN did she go?"))

    def test_the_number_of_workers_changes_nothing(self):
        for workers in (0, 3):
            self.train("--steps", "4", "--workers", workers, "--max-length", "8", out=f"run{workers}")
        self.assertEqual((self.folder / "run0/model.safetensors").read_bytes(),
                         (self.folder / "run3/model.safetensors").read_bytes())

    def test_long_texts_are_cut_as_in_training(self):
        self.train("--steps", "1", "--max-length", "6", "--no-lowercase")
        weights = ["--weights", "run/model.safetensors"]
        answers = self.lines("predict", *self.MODEL, *weights, "--text", "who did she go come", "who did she go go go",
                             "Who did she go")
        self.assertEqual(answers[0]["top"], answers[1]["top"])
        self.assertNotEqual(answers[0]["top"], answers[2]["top"])  # Who is unknown

    def tensors(self, path):
        header, data = read_safetensors(self.folder / path)
        header.pop("__metadata__")
        return {name: data[slice(*entry["data_offsets"])] for name, entry in header.items()}

    def test_a_frozen_encoder_stays_as_it_was(self):
        self.train("--steps", "1")
        self.train("--steps", "2", "--weights", "run/model.safetensors", "--freeze", "encoder", out="frozen")
        before, after = self.tensors("run/model.safetensors"), self.tensors("frozen/model.safetensors")
        self.assertEqual({name for name in before if before[name] != after[name]},
                         {"classifier.weight", "classifier.bias"})

    def test_sizes_come_from_a_config(self):
        run = [*self.MODEL, "--data", "trec:train.label"]
        self.good("train", *run, "--config", "config.json", "--steps", "1", "--out", "run")
        header, _ = read_safetensors(self.folder / "run/model.safetensors")
        self.assertEqual(header["bert.embeddings.word_embeddings.weight"]["shape"], [14, 32])
        self.assertNotIn("bert.encoder.layer.2.output.dense.weight", header)
        weights = ["--weights", "run/model.safetensors"]
        (first,) = self.lines("predict", *self.MODEL, *weights, "--text", "who")  # the weights know their sizes
        self.good("eval", *run, *weights)
        self.good("train", "--resume", "run")
        header.pop("__metadata__")
        data = self.tensors("run/model.safetensors")
        self.write("elsewhere.safetensors", safetensors(
            {name: (entry["dtype"], entry["shape"], data[name]) for name, entry in header.items()}))
        elsewhere = ["--weights", "elsewhere.safetensors", "--config", "config.json"]
        (second,) = self.lines("predict", *self.MODEL, *elsewhere, "--text", "who")
        self.assertEqual(first["probability"], second["probability"])
        self.good("eval", *run, *elsewhere)
        self.write("long.label", b"NUM:date" + b" go" * 20)
        self.mistake("train", *self.MODEL, "--data", "trec:long.label", "--config", "config.json", "--out", "second",
                     says=["24 tokens", "16 at most"])
        self.write("other.json", json.dumps(self.SIZES | {"hidden_size": 64}).encode())
        self.mistake("eval", *run, *weights, "--config", "other.json", says="--config")
        (plan,) = self.lines("plan", "bert_base", "--config", "config.json")
        self.assertLess(plan["peak_bytes"], 2 ** 23)
        for name, content, word in [("relu", b'{"hidden_act": "relu"}', "relu"), ("list", b"[]", "list.json"),
                                    ("none", b"{}", "none.json"), ("bad", b'{"vocab_size": -1}', "vocab_size")]:
            self.write(f"{name}.json", content)
            self.mistake("train", *run, "--config", f"{name}.json", "--out", "second", says=word)
        self.mistake("train", "lenet5", *SMALL, "--config", "config.json", "--out", "second", says="--config")

    def test_memory_is_known(self):
        self.mistake("train", *self.MODEL, "--data", "trec:train.label", "--width", "0.1", "--memory", "1MiB", "--out",
                     "run", says=["needs", "1.0 MiB"])

    def test_mistakes(self):
        data = ["--data", "trec:train.label", "--out", "run"]
        self.mistake("train", "bert_base", *data, says="--vocab")
        self.mistake("train", "lenet5", *data, "--vocab", "vocab.txt", says="does not take text")
        self.mistake("train", *self.MODEL, "--data", "trec:nowhere", "--out", "run", says="nowhere")
        self.mistake("train", *self.MODEL, *data, "--test", "train.label", "--holdout", "0.5", says="--holdout")
        self.mistake("train", *self.MODEL, *data, "--max-length", "1", says="max_length is 1")
        self.mistake("train", "lenet5", *SMALL, "--vocab", "vocab.txt", "--out", "run", says="for text")
        self.write("bad.label", b"NUM:date When ?\nNUM:never When ?\n")
        self.mistake("train", *self.MODEL, "--data", "trec:bad.label", "--out", "run", says=["line 2", "NUM:never"])
        self.write("large.txt", "\n".join(self.VOCAB + [f"w{i}" for i in range(31000)]).encode())
        self.mistake("train", "bert_base", *data, "--vocab", "large.txt", says=["31014 ids", "30522"])
        self.train("--steps", "1")
        weights = ["--weights", "run/model.safetensors"]
        self.mistake("predict", "bert_base", *weights, "--text", "who", says="--vocab")
        self.mistake("predict", *self.MODEL, *weights, "--text", "who", "--image", "a.png", says=["--text", "--image"])
        self.mistake("eval", "bert_base", *weights, "--data", "trec:train.label", says="--vocab")


class MaskedWords(Case):
    """Lines that say one word over and over: what is masked stands beside."""
    WORDS = ["river", "stone", "cloud", "field"]
    VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    MODEL = ["bert_base_mlm", "--vocab", "vocab.txt"]
    SIZES = Text.SIZES | {"vocab_size": len(VOCAB)}

    def setUp(self):
        super().setUp()
        self.write("vocab.txt", "\n".join(self.VOCAB).encode())
        self.write("config.json", json.dumps(self.SIZES).encode())
        lines = [" ".join([word] * count) for word in self.WORDS for count in (4, 5, 6, 7)]
        self.write("lines.txt", "\n".join([*lines, "", "nothing known"]).encode())

    def train(self, *options, out="run"):
        return self.lines("train", *self.MODEL, "--data", "text:lines.txt", "--config", "config.json", "--batch", "4",
                          "--lr", "0.003", "--warmup", "20", "--dropout", "0", *options, "--out", out)

    def test_train_eval_predict(self):
        *_, end = self.train("--test", "lines.txt", "--epochs", "60")
        self.assertGreater(end["accuracy"], 0.9)
        weights = ["--weights", "run/model.safetensors"]
        (score,) = self.lines("eval", *self.MODEL, "--data", "text:lines.txt", *weights)
        self.assertGreater(score["accuracy"], 0.9)
        self.assertEqual(score["samples"], 16)
        first, second, third = self.lines("predict", *self.MODEL, *weights, "--text", "stone [MASK] stone stone",
                                          "cloud cloud [MASK] cloud [MASK]")
        self.assertEqual([first["class"], second["class"], third["class"]], ["stone", "cloud", "cloud"])
        self.mistake("predict", *self.MODEL, *weights, "--text", "stone", says="[MASK]")

    def test_the_number_of_workers_changes_nothing(self):
        for workers in (0, 3):
            self.train("--steps", "6", "--workers", workers, out=f"run{workers}")
        self.assertEqual((self.folder / "run0/model.safetensors").read_bytes(),
                         (self.folder / "run3/model.safetensors").read_bytes())

    def test_questions_are_text(self):
        self.write("train.label", b"NUM:date river stone river\nLOC:city cloud field\n" * 4)
        self.good("train", *self.MODEL, "--data", "trec:train.label", "--config", "config.json", "--steps", "2",
                  "--memory", "1GiB", "--holdout", "0.25", "--out", "run")
        header, _ = read_safetensors(self.folder / "run/model.safetensors")
        for name in ("cls.predictions.bias", "cls.predictions.decoder.bias"):
            self.assertEqual(header[name]["shape"], [9])
        self.assertIn("cls.predictions.decoder.weight", header)
        self.assertNotIn("bert.pooler.dense.weight", header)

    def test_mistakes(self):
        data = ["--data", "text:lines.txt", "--out", "run"]
        self.mistake("train", "bert_base", "--vocab", "vocab.txt", *data, says=["no classes", "bert_base_mlm"])
        self.mistake("train", "bert_base_mlm", *data, says="--vocab")
        self.mistake("train", "lenet5", *data, "--vocab", "vocab.txt", says="does not take text")
        self.mistake("train", *self.MODEL, *data, "--classes", "3", says="--classes")
        self.mistake("train", *self.MODEL, *data, "--mixup", "1", says="--mixup")
        self.mistake("train", *self.MODEL, "--data", "text:nowhere", "--out", "run", says="nowhere")
        self.mistake("train", "bert_base_mlm", *SMALL, "--out", "run", says="token ids")
        self.write("empty.txt", b"\n\n")
        self.mistake("train", *self.MODEL, "--data", "text:empty.txt", "--out", "run", says="empty.txt")
        self.write("unmasked.txt", b"[UNK]\n[CLS]\n[SEP]\nriver\n")
        self.mistake("train", "bert_base_mlm", "--vocab", "unmasked.txt", *data, says="[MASK]")


class Mixing(Case):
    def losses(self, run):
        log = (self.folder / run / "log.jsonl").read_text()
        return [line["loss"] for line in map(json.loads, log.splitlines()) if "step" in line]

    def test_the_number_of_workers_changes_nothing(self):
        for workers in (0, 3):
            self.good("train", "lenet5", *SMALL, "--steps", "6", "--mixup", "0.4", "--cutmix", "1", "--workers", workers,
                      "--out", f"run{workers}")
        self.good("train", "lenet5", *SMALL, "--steps", "6", "--out", "plain")
        self.assertEqual(self.losses("run0"), self.losses("run3"))
        self.assertNotEqual(self.losses("run0"), self.losses("plain"))
        self.assertEqual((self.folder / "run0/model.safetensors").read_bytes(),
                         (self.folder / "run3/model.safetensors").read_bytes())

    def test_with_other_options(self):
        mixed = ["--mixup", "0.4", "--cutmix", "1", "--classes", "12", "--schedule", "none"]
        self.good("train", "lenet5", *SMALL, *mixed, "--steps", "5", "--out", "whole")
        self.good("train", "lenet5", *SMALL, *mixed, "--steps", "5", "--checkpoint-every", "2", "--memory", "1GiB", "--out",
                  "same")
        self.assertEqual(self.losses("whole"), self.losses("same"))
        self.mistake("train", "--resume", "same", "--mixup", "0.5", says="--mixup")

    def test_mistakes(self):
        self.write("d.safetensors", safetensors({"x": ("F32", [2, 2], floats([0.0] * 4)), "y": ("F32", [2, 1], floats([0.0] * 2))}))
        self.mistake("train", "mlp", "--data", "tensors:d.safetensors", "--mixup", "1", "--out", "run", says="--mixup")
        self.mistake("train", "simclr_resnet18", *SMALL, "--width", "0.1", "--cutmix", "1", "--out", "run", says="--cutmix")
        self.mistake("train", "lenet5", *SMALL, "--mixup", "-1", "--out", "run", says="--mixup")


class Mistakes(Case):
    def test_words(self):
        self.mistake(says="subcommand")
        self.mistake("dance")
        self.mistake("train", "lenet5", *SMALL, "--colour", "red", says="--colour")
        self.mistake("train", "lenet6", *SMALL, says=MODELS)
        self.mistake("train", says=MODELS)
        self.mistake("train", "lenet5", says="--data")
        self.mistake("train", "lenet5", "--data", "cats", says=["shapes", "mnist:", "cifar10:", "folder:", "tensors:", "trec:", "text:"])
        self.mistake("plan", "lenet6", says=MODELS)
        self.mistake("bench", "lenet6", says=MODELS)
        self.mistake("predict", "lenet6", "--weights", "w", "--image", "i", says=MODELS)
        self.mistake("ops", "dance", says="matmul")

    def test_numbers(self):
        for option, value in [("--epochs", "0"), ("--steps", "-1"), ("--batch", "0"), ("--batch", "many"),
                              ("--accumulate", "0"), ("--lr", "nan"), ("--lr", "-1"), ("--momentum", "1"),
                              ("--weight-decay", "inf"), ("--warmup", "-1"), ("--clip-grad", "-1"),
                              ("--label-smoothing", "1"), ("--dropout", "2"), ("--width", "0"), ("--image-size", "0"), ("--holdout", "1"),
                              ("--seed", "-1"), ("--checkpoint-every", "0"), ("--memory", "much"),
                              ("--memory", "1GiBB"), ("--memory", "-1MB")]:
            self.mistake("train", "lenet5", "--data", "shapes", option, value, "--out", "run")
        self.mistake("plan", "mlp", "--batch", "-3", says="--batch")
        self.mistake("bench", "mlp", "--seconds", "-3", says="--seconds")

    def test_choices(self):
        for option, choices in [("--precision", ["fp32", "bf16", "fp16"]),
                                ("--optimizer", ["sgd", "adam", "adamw", "lars", "rprop"]),
                                ("--schedule", ["cosine", "step", "none"]), ("--augment", ["standard", "none"])]:
            self.mistake("train", "lenet5", *SMALL, option, "odd", "--out", "run", says=[option, *choices])
        self.mistake("train", "lenet5", *SMALL, "--device", "abacus", says="abacus")
        self.mistake("train", "lenet5", *SMALL, "--device", "mps", says="mps")
        self.mistake("plan", "mlp", "--phase", "odd", says=["train", "eval"])
        self.mistake("train", "lenet5", *SMALL, "--epochs", "1", "--steps", "2", says=["--epochs", "--steps"])

    def test_missing_files(self):
        self.mistake("train", "lenet5", "--data", "mnist:nowhere", says="nowhere")
        self.mistake("train", "lenet5", "--data", "folder:nowhere", says="nowhere")
        self.mistake("train", "lenet5", "--data", "cifar10:nowhere", says="nowhere")
        self.mistake("train", "mlp", "--data", "tensors:nowhere.safetensors", says="nowhere")
        self.mistake("train", "lenet5", *SMALL, "--weights", "nowhere", "--out", "run", says="nowhere")
        self.mistake("train", "--resume", "nowhere", says="nowhere")
        self.mistake("eval", "lenet5", "--data", "shapes", "--weights", "nowhere", says="nowhere")
        self.mistake("predict", "lenet5", "--weights", "nowhere", "--image", "a.png", says="nowhere")

    def test_data_that_does_not_fit_the_model(self):
        self.mistake("train", "bert_base", "--data", "shapes", "--out", "run", says="token ids")
        x = safetensors({"x": ("F32", [4, 8], floats([0.0] * 32)), "y": ("I64", [4], integers([0, 1, 0, 1]))})
        self.write("d.safetensors", x)
        self.mistake("train", "lenet5", "--data", "tensors:d.safetensors", "--holdout", "0.5", "--out", "run",
                     says="[8]")
        y = safetensors({"x": ("F32", [4, 8], floats([0.0] * 32)), "y": ("I64", [4], integers([0, -1, 0, 1]))})
        self.write("e.safetensors", y)
        self.mistake("train", "mlp", "--data", "tensors:e.safetensors", "--holdout", "0.5", "--out", "run",
                     says="classes")

    def test_memory_is_refused_before_anything_runs(self):
        self.mistake("train", "lenet5", "--data", "shapes", "--batch", "64", "--memory", "100KiB", "--out", "run",
                     says=["needs", "100.0 KiB", "would fit"])
        self.mistake("plan", "lenet5", "--memory", "100KiB", says=["needs", "100.0 KiB"])

    def test_a_plan_keeps_within_its_memory(self):
        plan = ["plan", "resnet18_cifar", "--batch", "32"]
        (freely,) = self.lines(*plan)
        memory = freely["peak_bytes"] * 4 // 5
        (limited,) = self.lines(*plan, "--memory", memory)
        self.assertLessEqual(limited["peak_bytes"], memory)
        self.assertGreater(limited["bytes_moved"], freely["bytes_moved"])
        self.assertLess(limited["operations"], freely["operations"] * 1.2)

    def test_a_benchmark_plans_within_its_memory(self):
        bench = ["bench", "resnet18_cifar", "--batch", "16", "--width", "0.25", "--phase", "train", "--precision", "fp32",
                 "--seconds", "0"]
        (freely,) = self.lines(*bench)
        memory = freely["planned_bytes"] * 9 // 10
        (limited,) = self.lines(*bench, "--memory", memory)
        for key in ("planned_bytes", "peak_bytes"):
            self.assertLessEqual(limited[key], memory)

    def test_damaged_weights(self):
        whole = safetensors({"fc1.weight": ("F32", [2, 2], floats([1, 2, 3, 4]))})
        for name, content in [("empty", b""), ("short", whole[:-3]), ("long", whole + b"x"), ("noise", bytes(range(99))),
                              ("huge", struct.pack("<Q", 2 ** 60) + whole[8:]), ("other", whole)]:
            path = self.write(f"{name}.safetensors", content)
            self.mistake("eval", "mlp", "--data", "shapes", "--weights", path, says=path.name)
            self.mistake("predict", "mlp", "--weights", path, "--input", path, "--output", "y.safetensors",
                         says=path.name)

    def test_damaged_image(self):
        square = png(32, 90)
        for at, name in enumerate(["train/a/1.png", "train/b/1.png", "test/a/1.png", "test/b/1.png"]):
            self.write(f"tree/{name}", square if at else square[:40])
        self.mistake("train", "lenet5", "--data", "folder:tree", "--out", "run", says="1.png")


class Runs(Case):
    def test_train_eval_predict(self):
        *epochs, end = self.lines("train", "lenet5", *SMALL, "--epochs", "2", "--out", "run")
        self.assertEqual([line["epoch"] for line in epochs], [1, 2])
        self.assertTrue(end["finished"])
        written = sorted(path.name for path in (self.folder / "run").iterdir())
        self.assertEqual(written, ["best.safetensors", "checkpoint", "log.jsonl", "model.safetensors", "report.html"])
        log = [json.loads(line) for line in (self.folder / "run/log.jsonl").read_text().splitlines()]
        steps = [line for line in log if "step" in line]
        self.assertEqual([line["step"] for line in steps], list(range(1, end["steps"] + 1)))
        for line in steps:
            self.assertEqual(sorted(line), ["loss", "lr", "ms", "step"])
        report = pages.Page((self.folder / "run/report.html").read_text())
        captions = ["Training loss", "Accuracy on the evaluation part, %", "Loss on the evaluation part", "Learning rate"]
        self.assertEqual([text for _, text in report.all("figcaption")], captions)
        self.assertEqual(len(report.all("polyline")), len(captions))
        self.assertIn(["model", "lenet5"], report.table())

        (score,) = self.lines("eval", "lenet5", *SMALL, "--weights", "run/model.safetensors")
        self.assertEqual(score["accuracy"], end["accuracy"])
        self.write("a.png", png(40, 90))
        (guess,) = self.lines("predict", "lenet5", "--weights", "run/model.safetensors", "--image", "a.png")
        self.assertIn(guess["class"], ["circle", "ring", "square", "frame", "triangle", "diamond", "cross", "star",
                                       "crescent", "heart"])
        self.mistake("predict", "lenet5", "--weights", "run/model.safetensors", "--image", "a.png", "b.png", says="b.png")
        self.mistake("predict", "mlp", "--weights", "run/model.safetensors", "--image", "a.png", says="lenet5")
        self.mistake("train", "lenet5", *SMALL, "--weights", "run/model.safetensors", "--image-size", "32", "--out", "two",
                     says=["--image-size 32", "28 x 28"])

        before = {path.name: path.read_bytes() for path in (self.folder / "run").iterdir()}
        self.mistake("train", "--resume", "run", "--lr", "0.5", says="--lr 0.5")
        self.mistake("train", "mlp", "--resume", "run", says="mlp")
        damaged = bytearray(before["checkpoint"])
        damaged[-100] ^= 1
        self.write("other/checkpoint", bytes(damaged))
        self.mistake("train", "--resume", "other", says="damaged")
        self.assertEqual({path.name: path.read_bytes() for path in (self.folder / "run").iterdir()}, before)

    def test_threads_are_part_of_a_run(self):
        self.good("train", "lenet5", *SMALL, "--steps", "2", "--out", "run")
        answer = subprocess.run([self.program, "train", "--resume", "run"], cwd=self.folder, capture_output=True, text=True,
                                check=False, env=dict(os.environ, OMP_NUM_THREADS="2"))
        self.assertEqual(answer.returncode, 2, answer.stderr)
        self.assertIn("OMP_NUM_THREADS=1", answer.stderr)

    def test_a_signal_stops_cleanly_and_the_run_goes_on(self):
        arguments = ["train", "lenet5", *SMALL, "--epochs", "500", "--out", "run"]
        process = subprocess.Popen([self.program, *arguments], cwd=self.folder, stdout=subprocess.PIPE, text=True,
                                   env=dict(os.environ, OMP_NUM_THREADS="1"))
        for line in process.stdout:
            if line.startswith("epoch 1"):
                break
        process.terminate()
        rest, _ = process.communicate()
        self.assertEqual(process.returncode, 0)
        self.assertIn("--resume run", rest)

    def test_tensors_for_a_perceptron(self):
        rows = 64
        x = [float((row * 7 + column * 3) % 5) for row in range(rows) for column in range(6)]
        y = [row % 2 for row in range(rows)]
        self.write("d.safetensors", safetensors({"x": ("F32", [rows, 6], floats(x)), "y": ("I64", [rows], integers(y))}))
        self.good("train", "mlp", "--data", "tensors:d.safetensors", "--holdout", "0.25", "--epochs", "1", "--out", "run")
        self.good("predict", "mlp", "--weights", "run/model.safetensors", "--input", "d.safetensors", "--output",
                  "y.safetensors")
        header, _ = read_safetensors(self.folder / "y.safetensors")
        self.assertEqual(header["y"]["shape"], [rows, 2])
        self.assertEqual(header["y"]["dtype"], "F32")

    def test_one_part_trains_without_evaluation(self):
        x = safetensors({"x": ("F32", [4, 8], floats([0.5] * 32)), "y": ("I64", [4], integers([0, 1, 0, 1]))})
        self.write("d.safetensors", x)
        text = self.good("train", "mlp", "--data", "tensors:d.safetensors", "--epochs", "2", "--out", "run")
        self.assertIn("nothing is evaluated", text)
        self.assertNotIn("accuracy", text)

    def test_weights_from_elsewhere_start_a_run_on_tensors(self):
        rows, side = 6, 28
        x = [float((row + 3 * pixel) % 7) / 7 for row in range(rows) for pixel in range(side * side)]
        self.write("d.safetensors", safetensors({"x": ("F32", [rows, 1, side, side], floats(x)),
                                                 "y": ("I64", [rows], integers([0, 1, 2, 0, 1, 2]))}))
        run = ["--data", "tensors:d.safetensors", "--batch", "6", "--no-shuffle", "--schedule", "none"]
        self.good("train", "lenet5", *run, "--steps", "3", "--lr", "0.01", "--out", "run")
        header, data = read_safetensors(self.folder / "run/model.safetensors")
        header.pop("__metadata__")  # as torch's files come
        self.write("elsewhere.safetensors", safetensors(
            {name: (entry["dtype"], entry["shape"], data[slice(*entry["data_offsets"])])
             for name, entry in header.items()}))
        torch_file(self.folder / "elsewhere.pth", {name: (entry["shape"], data[slice(*entry["data_offsets"])])
                                                   for name, entry in header.items()})
        self.write("index.json", json.dumps({"weight_map": {name: "elsewhere.pth" for name in header}}).encode())
        for weights in ("run/model.safetensors", "elsewhere.safetensors", "elsewhere.pth", "index.json"):
            self.good("train", "lenet5", *run, "--steps", "1", "--weights", weights, "--out", "second")
            log = (self.folder / "second/log.jsonl").read_text()
            (loss,) = [line["loss"] for line in map(json.loads, log.splitlines()) if "loss" in line and "step" in line]
            (score,) = self.lines("eval", "lenet5", "--data", "tensors:d.safetensors", "--weights", weights)
            self.assertAlmostEqual(score["loss"], loss, places=4)
        self.good("train", "lenet5", *run, "--steps", "1", "--weights", "elsewhere.pth", "--classes", "5",
                  "--out", "fifth")
        header, _ = read_safetensors(self.folder / "fifth/model.safetensors")
        self.assertEqual(header["c.4.bias"]["shape"], [5])
        self.mistake("train", "lenet5", *run, "--weights", "elsewhere.pth", "--classes", "2", "--out", "third",
                     says="--classes 2")
        self.write("e.safetensors", safetensors({"x": ("F32", [2, 3, side, side], floats([0.0] * 6 * side * side)),
                                                 "y": ("I64", [2], integers([0, 1]))}))
        self.mistake("train", "lenet5", "--data", "tensors:e.safetensors", "--weights", "elsewhere.safetensors",
                     "--out", "third", says="3 channels")
        self.mistake("train", "lenet5", *run, "--image-size", "32", "--out", "third", says="--image-size")

    def test_image_size(self):
        self.good("train", "lenet5", *SMALL, "--steps", "1", "--image-size", "32", "--out", "run")
        header, _ = read_safetensors(self.folder / "run/model.safetensors")
        self.assertEqual(header["c.0.weight"]["shape"], [120, 16 * 6 * 6])
        self.good("eval", "lenet5", *SMALL, "--weights", "run/model.safetensors")

    def test_weights_are_converted(self):
        torch_file(self.folder / "a.pth", {"x": ([2, 1], floats([1, 2])), "y": ([], floats([3]))})
        (line,) = self.lines("convert", "a.pth", "b.safetensors")
        self.assertEqual(line, {"output": "b.safetensors", "tensors": 2, "bytes": 12})
        header, data = read_safetensors(self.folder / "b.safetensors")
        self.assertEqual(header.pop("__metadata__"), {"format": "pt"})
        self.assertEqual(list(header), ["x", "y"])
        self.assertEqual(data, floats([1, 2, 3]))
        self.assertIn("2 tensors, 12 bytes", self.good("convert", "b.safetensors", "b.safetensors"))
        whole = (self.folder / "a.pth").read_bytes()
        self.write("short.pth", whole[:-9])
        self.mistake("convert", "short.pth", "c.safetensors", says="short.pth")
        self.mistake("convert", "a.pth", "nowhere/c.safetensors", says="nowhere")
        self.mistake("convert", "a.pth", says="OUT")
        self.assertFalse((self.folder / "c.safetensors").exists())

    def test_events_for_tensorboard(self):
        run = ["train", "lenet5", *SMALL, "--steps", "20", "--out", "run"]
        self.good(*run, "--tensorboard", "logs/events")
        log = [json.loads(line) for line in (self.folder / "run/log.jsonl").read_text().splitlines()]
        steps = {line["step"]: line for line in log if "step" in line}
        shown = event_files.read_folder(self.folder / "logs/events")
        self.assertEqual(sorted(shown), ["test/accuracy", "test/loss", "train/learning_rate", "train/loss"])
        for tag, key in (("train/loss", "loss"), ("train/learning_rate", "lr")):
            self.assertEqual(shown[tag], {step: event_files.as_float32(line[key]) for step, line in steps.items()})
        for tag, key in (("test/loss", "test_loss"), ("test/accuracy", "accuracy")):
            self.assertEqual(list(shown[tag].values()),
                             [event_files.as_float32(line[key]) for line in log if "epoch" in line])
        self.assertEqual(max(shown["test/accuracy"]), 20)
        self.good("train", "--resume", "run", "--tensorboard", "logs/events")
        first, second = sorted((self.folder / "logs/events").iterdir())
        self.assertEqual([event[1:] for event in event_files.read_file(second)], [(21, "start")])
        times = [time for time, _, _ in event_files.read_file(first)]
        self.assertEqual(times[1:], sorted(times[1:]))
        self.write("file", b"")
        self.mistake(*run[:-1], "other", "--tensorboard", "file/events", says="file/events")

    def test_bench_and_profile(self):
        (line,) = self.lines("bench", "lenet5", "--phase", "train", "--precision", "fp32", "--seconds", "0")
        expected = ["model", "phase", "precision", "batch", "device", "ms", "samples_per_s", "first_step_s",
                    "planned_bytes", "peak_bytes", "resident_bytes", "kernels", "utilisation"]
        self.assertEqual(list(line), expected)
        self.assertEqual(line["batch"], 64)
        self.assertGreater(line["kernels"], 0)
        rows = self.lines("profile", "lenet5", "--steps", "1", "--trace", "t.json")
        self.assertEqual(len(rows), 10)
        self.assertIn("traceEvents", json.loads((self.folder / "t.json").read_text()))


class Bench(Case):
    QUICK = ["--seconds", "0", "--out", "out"]

    def page(self):
        return pages.Page((self.folder / "out/bench.html").read_text())

    def test_a_suite_is_a_page_of_speed_ups(self):
        lines = self.lines("bench", "mlp", "lenet5", "--suite", "mission", "--device", "reference", "--batch", "2",
                           "--width", "0.125", *self.QUICK)
        cases = [(line["model"], line["phase"], line["device"], line["precision"]) for line in lines]
        self.assertEqual(cases, [(model, phase, device, precision) for model in ("mlp", "lenet5")
                                 for phase in ("train", "eval") for device in ("cpu", "reference")
                                 for precision in ("fp32", "bf16")])
        for at, line in enumerate(lines):
            self.assertAlmostEqual(line["speedup"], line["samples_per_s"] / lines[at // 4 * 4]["samples_per_s"])
        page = self.page()
        captions = [text for _, text in page.all("figcaption")]
        self.assertEqual(captions, [f"Speed-up of {phase} over cpu, fp32, in samples a second"
                                    for phase in ("training", "evaluation")])
        # A bar for each but the baseline, by phase, then by model; the line at 1 is as long as a speed-up of 1.
        drawn = [line for phase in ("train", "eval") for line in lines
                 if line["phase"] == phase and (line["device"], line["precision"]) != ("cpu", "fp32")]
        bars = [(float(bar["x"]), float(bar["width"])) for bar, _ in page.all("rect")]
        marks = [float(line["x1"]) for line, _ in page.all("line") if line["class"] == "mark"]
        self.assertEqual((len(bars), len(marks)), (12, 2))
        for at, (line, (start, width)) in enumerate(zip(drawn, bars)):
            self.assertAlmostEqual(width, line["speedup"] * (marks[at // 6] - start), delta=0.1 + 0.05 * line["speedup"])
        rows = page.table()
        for line in lines:
            phase = {"train": "training", "eval": "evaluation"}[line["phase"]]
            (row,) = [row for row in rows if row[:4] == [line["model"], phase, line["device"], line["precision"]]]
            self.assertEqual(row[4:8], ["2", f"{line['ms']:.3f}", f"{line['samples_per_s']:.1f}", f"{line['speedup']:.2f}"])

    def test_what_fails_is_a_row(self):
        suite = ["bench", "alexnet", "mlp", "--suite", "mission", "--precision", "fp32", "--phase", "eval", "--batch", "1",
                 "--width", "0.125", *self.QUICK]
        failed, measured = self.lines(*suite, "--memory", "2MiB")
        self.assertEqual(list(failed), ["model", "phase", "precision", "batch", "device", "error"])
        self.assertIn("the limit is 2097152", failed["error"])
        self.assertEqual((measured["model"], measured["speedup"]), ("mlp", 1))
        self.assertIn(["alexnet", "evaluation", "cpu", "fp32", "1", failed["error"]], self.page().table())
        self.assertIn("failed", [text for _, text in self.page().all("text")])
        text = self.good(*suite, "--memory", "2MiB")
        self.assertIn(failed["error"], text)
        self.assertIn("bench.html", text)
        answer = self.russet(*suite, "--memory", "1KiB")
        self.assertEqual((answer.returncode, len(answer.stderr.splitlines())), (2, 1), answer.stderr)

    def test_batches_make_curves(self):
        sweep = ["bench", "mlp", "--batch", "4,1,2", "--precision", "fp32", "--width", "0.125", "--seconds", "0"]
        lines = self.lines(*sweep, "--out", "out")
        self.assertEqual([(line["phase"], line["batch"]) for line in lines],
                         [(phase, batch) for phase in ("train", "eval") for batch in (4, 1, 2)])
        page = self.page()
        self.assertEqual([text for _, text in page.all("figcaption")],
                         [f"mlp, {phase}: {what}" for phase in ("training", "evaluation")
                          for what in ("seconds a step", "samples a second")])
        curves = [[tuple(map(float, point.split(","))) for point in line["points"].split()]
                  for line, _ in page.all("polyline")]
        self.assertEqual([len(curve) for curve in curves], [3] * 4)
        for (left, _), (middle, _), (right, _) in curves:
            self.assertAlmostEqual(middle - left, right - middle, delta=0.2)  # the axis of batches is logarithmic
        rates = {line["batch"]: line["samples_per_s"] for line in lines if line["phase"] == "train"}
        heights = [260 - 30 - y for _, y in curves[1]]
        for batch, height in zip((1, 2, 4), heights):
            self.assertAlmostEqual(height / heights[2], rates[batch] / rates[4], delta=0.02 * max(1, rates[batch] / rates[4]))
        (self.folder / "out/bench.html").unlink()
        self.assertNotIn("bench.html", self.good(*sweep))
        self.assertFalse((self.folder / "out/bench.html").exists())

    def test_mistakes(self):
        self.mistake("bench", "--suite", "other", "--out", "out", says="mission")
        self.mistake("bench", "--suite", "mission", says="--out")
        self.mistake("bench", "--suite", "mission", "--batch", "1,2", "--out", "out", says="--batch")
        self.mistake("bench", "mlp", "--baseline", "cpu", says="--suite")
        self.mistake("bench", "mlp", "--suite", "mission", "--baseline", "abacus", "--out", "out", says="abacus")
        self.mistake("bench", "--device", "cpu,mps", "mlp", "--out", "out", says="mps")
        self.mistake("bench", "mlp", "--batch", "1,0", says="--batch 0")
        self.mistake("bench", "mlp", "--batch", "1,many", says="many")
        self.write("file", b"")
        self.mistake("bench", "mlp", "--out", "file/out", says="file/out")


if __name__ == "__main__":
    Case.program = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main()
