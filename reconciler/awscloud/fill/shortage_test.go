package fill

import (
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
)

// Reads beside each other share what is remembered: what one has forgotten the other
// may still be told of.
func TestWhatAnotherReadHasForgotten(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	l := shortLog{began: now}
	groups := map[string]observed.Group{"web": {CreatedAt: now.Add(-time.Hour), DesiredCapacity: 1}}
	if due, _ := l.due(groups, []string{"web"}, nil, now, now); len(due) != 1 {
		t.Errorf("a process that has just started asks about %v", due)
	}
	l.due(groups, nil, nil, now, now)
	l.note("web", nil, now, now)
	l.unanswered([]string{"web"}, now)
	l.setAlone("web")
	if l.isAlone("web") || len(l.launches()) != 0 {
		t.Error("something was remembered")
	}
	now = now.Add(2 * time.Minute)
	if due, _ := l.due(groups, []string{"web"}, nil, now, now); len(due) != 0 {
		t.Errorf("within the grace it asks about %v", due)
	}
}
