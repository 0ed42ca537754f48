"""Pages and files for people: paying, timelines, downloads."""
