"""Folders of users, for programs of release 1.19 that take them from here."""
