package report

import "net/url"

// PullMarker returns the beginning of an instance's comments on pull requests of a source. It is
// hidden.
func PullMarker(instance, source string) string {
	return "<!-- weir:" + url.QueryEscape(instance) + ":" + url.QueryEscape(source) + " -->"
}

// DigestMarker is in the comment that shows the plan with a digest. It is hidden,
// and nothing that comes from elsewhere can be one: it is escaped.
func DigestMarker(digest string) string { return "<!-- weir:digest:" + digest + " -->" }
