"""What the commands do, without the command line: paths and a recipe in, a frozen report out.

One module a command, and a program may call them as the commands do. A step reads files, asks the engine, writes
files and measures the time; it prints nothing.
"""
