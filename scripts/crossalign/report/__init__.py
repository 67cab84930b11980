"""The page that people open. `gather` collects what a run has made, `page` fills the templates in resources/report."""
