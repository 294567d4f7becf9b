package memory

import (
	"testing"
	"time"
)

func TestMadeNames(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	f := New(func() time.Time { return now }).Made
	f.Add("lt-1", "", "web")
	if f.Any("", "lt-2") || !f.Any("lt-2", "web") {
		t.Error("names are taken for one another")
	}
	now = now.Add(settling - time.Second)
	if !f.Any("lt-1") {
		t.Error("forgotten too soon")
	}
	now = now.Add(time.Second)
	if f.Any("lt-1") {
		t.Error("new for too long")
	}
	f.Add("lt-3")
	f.Sweep()
	if len(f.made) != 1 {
		t.Errorf("old names stay: %v", f.made)
	}
	f.Drop("lt-3")
	if f.Any("lt-3") {
		t.Error("a dropped name is new")
	}
}
