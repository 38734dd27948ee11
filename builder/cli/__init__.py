"""The command line: thin verbs over the core. Only this package prints."""
