// A library that has nothing in it: as one that is too old, and found before any other of its name.
extern "C" int nothing_in_it;
int nothing_in_it = 0;
