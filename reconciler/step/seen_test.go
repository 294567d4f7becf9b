package step_test

import (
	"maps"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/step"
)

// What a call without a condition names is looked at again by its ARN, or by its id, by when it was made, and by each tag that says whose it is or whether it
// may go.
func TestWhatIsAnotherOne(t *testing.T) {
	made := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	tags := map[string]string{observed.TagOwner: "weir", observed.TagSource: "pools", observed.TagTarget: "prod", observed.TagPool: "default/web", observed.TagPrune: "true"}
	seen := func() *step.Seen {
		return &step.Seen{Resource: step.AutoScalingGroup, Name: "web", ID: "lt-1", ARN: "arn:1", CreatedAt: made, Tags: maps.Clone(tags)}
	}
	for name, tc := range map[string]struct {
		change  func(*step.Seen)
		differs bool
	}{
		"nothing":              {func(*step.Seen) {}, false},
		"the same moment":      {func(s *step.Seen) { s.CreatedAt = made.In(time.FixedZone("", 3600)) }, false},
		"a tag of another use": {func(s *step.Seen) { s.Tags["team"] = "a" }, false},
		"the ARN":              {func(s *step.Seen) { s.ARN = "arn:2" }, true},
		"the id":               {func(s *step.Seen) { s.ID = "lt-2" }, true},
		"when it was made":     {func(s *step.Seen) { s.CreatedAt = made.Add(time.Millisecond) }, true},
		"the owner":            {func(s *step.Seen) { s.Tags[observed.TagOwner] = "other" }, true},
		"no owner":             {func(s *step.Seen) { delete(s.Tags, observed.TagOwner) }, true},
		"the source":           {func(s *step.Seen) { s.Tags[observed.TagSource] = "other" }, true},
		"the target":           {func(s *step.Seen) { s.Tags[observed.TagTarget] = "dev" }, true},
		"the pool":             {func(s *step.Seen) { s.Tags[observed.TagPool] = "default/api" }, true},
		"that it may not go":   {func(s *step.Seen) { s.Tags[observed.TagPrune] = "false" }, true},
	} {
		now := seen()
		tc.change(now)
		if why := seen().Differs(now); (why != "") != tc.differs {
			t.Errorf("%s: %q", name, why)
		}
	}
	// Of what weir has just made only the owner can be known.
	by := (step.About{Group: "web"}).Made("weir")
	if why := by.Differs(seen()); why != "" {
		t.Errorf("made a moment ago: %s", why)
	}
	other := seen()
	other.Tags[observed.TagOwner] = "other"
	if by.Differs(other) == "" {
		t.Error("what another one has made a moment ago counts as ours")
	}
}
