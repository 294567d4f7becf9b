package events_test

import (
	"strings"
	"testing"

	"github.com/weir-gitops/weir/status/events"
)

// A part of user data is named by what it says, which may be secret.
func TestTheFieldOfAChangeIsRedacted(t *testing.T) {
	e := events.Event{Changes: []events.Change{{Field: "userData.write_files[/etc/hunter2]", To: "1 line"}}}
	shown := events.Redacted(func(s string) string { return strings.ReplaceAll(s, "hunter2", "***") }, e)
	if got := shown.Changes[0].Field; got != "userData.write_files[/etc/***]" {
		t.Errorf("the event shows %s", got)
	}
	if got := e.Changes[0].Field; got != "userData.write_files[/etc/hunter2]" {
		t.Errorf("the event itself became %s", got)
	}
}
