package resolve_test

import (
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/resolve"
	"github.com/weir-gitops/weir/render/intent"
)

// An image that was reviewed is an answer as long as the lookup may stand for it: who
// reviewed it, with which role, is no reason to take another.
func TestAReviewedImageIsHeldAgainstItsLookup(t *testing.T) {
	const parameter = "/ours/ami"
	byParameter := intent.Lookup{Kind: intent.ImageByParameter, Name: parameter, InstanceType: "m5.large"}
	byName := intent.Lookup{Kind: intent.ImageByName, Owner: "us", Name: "ours-*", InstanceType: "m5.large"}
	c := newClock()
	for name, tc := range map[string]struct {
		lookup  intent.Lookup
		edit    func(*resolve.Image)
		problem string
	}{
		"by parameter":               {byParameter, func(*resolve.Image) {}, ""},
		"by name":                    {byName, func(*resolve.Image) {}, ""},
		"gone":                       {byParameter, func(im *resolve.Image) { im.ID = "ami-other" }, "there is no image ami-1 any more"},
		"gone by name":               {byName, func(im *resolve.Image) { im.ID = "ami-other" }, "no longer matches the lookup: image named ours-*"},
		"of another name":            {byName, func(im *resolve.Image) { im.Name = "theirs-1" }, "no longer matches the lookup: image named ours-*"},
		"being withdrawn":            {byParameter, func(im *resolve.Image) { im.State = "deregistered" }, "is deregistered"},
		"deprecated":                 {byParameter, func(im *resolve.Image) { im.DeprecatedAt = c.now().Add(-time.Hour).Format(time.RFC3339) }, "is deprecated since"},
		"deprecated some day":        {byParameter, func(im *resolve.Image) { im.DeprecatedAt = c.now().Add(time.Hour).Format(time.RFC3339) }, ""},
		"deprecated nobody knows as": {byParameter, func(im *resolve.Image) { im.DeprecatedAt = "soon" }, "is deprecated since soon"},
		"of somebody else":           {byParameter, func(im *resolve.Image) { im.Owner = "them" }, "another owner or architecture"},
		"for other machines":         {byParameter, func(im *resolve.Image) { im.Architecture = "arm64" }, "another owner or architecture"},
	} {
		t.Run(name, func(t *testing.T) {
			first, second := image("ami-1", "ours-1", "x86_64", "2026-01-01"), image("ami-2", "ours-2", "x86_64", "2026-01-02")
			tc.edit(&first)
			f := &fakeCloud{
				parameters: map[string]string{parameter: "ami-2"}, images: []resolve.Image{first, second},
				owners: map[string]string{"ami-1": "us", "ami-2": "us"}, architectures: map[string][]string{"m5.large": {"x86_64"}},
			}
			r := resolve.New(f, c.now)
			got, err := r.Answer(t.Context(), []resolve.Request{{Lookup: tc.lookup}, {Lookup: tc.lookup, Image: "ami-1"}})
			if err != nil {
				t.Fatal(err)
			}
			if got[0].Image == nil || got[0].Image.ID != "ami-2" {
				t.Errorf("the newest: %+v", got[0])
			}
			switch a := got[1]; {
			case tc.problem == "" && (a.Image == nil || a.Image.ID != "ami-1"):
				t.Errorf("got %+v", a)
			case tc.problem != "" && (a.Image != nil || a.Code != "reviewed-image-gone" || !strings.Contains(a.Problem, tc.problem)):
				t.Errorf("got %+v, want %q", a, tc.problem)
			}
		})
	}
}

// The resolver gives a reviewed pool no answer from before its review.
func TestAnAnswerIsNoOlderThanItsReview(t *testing.T) {
	c := newClock()
	f := &fakeCloud{
		images: []resolve.Image{image("ami-1", "ours-1", "x86_64", "2026-01-01")}, owners: map[string]string{"ami-1": "us", "ami-2": "us"},
		parameters: map[string]string{"/ours": "ami-1"}, architectures: map[string][]string{"m5.large": {"x86_64"}},
	}
	r := resolve.New(f, c.now)
	byName := resolve.Request{Lookup: intent.Lookup{Kind: intent.ImageByName, Owner: "us", Name: "ours-*"}}
	byParameter := resolve.Request{Lookup: intent.Lookup{Kind: intent.ImageByParameter, Name: "/ours"}}
	ask := func(since time.Time) []observed.Answer {
		t.Helper()
		byName.Since, byParameter.Since = since, since
		got, err := r.Answer(t.Context(), []resolve.Request{byName, byParameter})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	ask(time.Time{})
	f.images, f.parameters["/ours"] = append(f.images, image("ami-2", "ours-2", "x86_64", "2026-01-02")), "ami-2"
	c.t = c.t.Add(time.Minute)
	reviewed := c.t
	c.t = c.t.Add(time.Minute)
	for _, a := range ask(time.Time{}) {
		if a.Image.ID != "ami-1" {
			t.Errorf("without a review: %+v", a.Image)
		}
	}
	for _, a := range ask(reviewed) {
		if a.Image.ID != "ami-2" {
			t.Errorf("after the review: %+v", a.Image)
		}
	}
	f.take()
	ask(reviewed)
	ask(c.t.Add(time.Hour)) // by a clock that was set back
	if calls := f.take(); len(calls) > 0 {
		t.Errorf("asked again: %v", calls)
	}
}
