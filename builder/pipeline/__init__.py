"""Running a plan: stages whose results are staged beside their destination and moved into place."""
