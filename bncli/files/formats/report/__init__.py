"""A page to look at: one HTML file that opens from a disk, without a network, a library or a server.

    blocks     what a section is made of: words, tables, pictures, the panels that answer when they are touched
    markup     the only place where text becomes HTML, and is escaped
    page       the whole file: head with its content security policy, sections, data, look (page.css), script (page.js)

A page holds aggregates alone, never rows. Without a script it shows everything but what has to be computed anew.
"""
