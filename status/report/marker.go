package report

import "net/url"

// PullMarker returns the hidden start of an instance's comments on the pull requests of a source.
func PullMarker(instance, source string) string {
	return "<!-- weir:" + url.QueryEscape(instance) + ":" + url.QueryEscape(source) + " -->"
}

// DigestMarker returns the hidden marker in the comment that shows the plan with a digest. Text from
// elsewhere is escaped, so it cannot forge a marker.
func DigestMarker(digest string) string { return "<!-- weir:digest:" + digest + " -->" }
