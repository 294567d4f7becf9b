package members

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/coord"
	"github.com/weir-gitops/weir/status/events/kinds"
)

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

func member(session, name string, clock time.Time) coord.Alive {
	return coord.Alive{Session: session, Member: coord.Member{Name: name, Version: "1.0", Clock: clock}}
}

func owner(key, session, name string, released bool) coord.Owner {
	return coord.Owner{Key: key, Session: session, Member: name, Since: noon, Epoch: coord.Epoch{Engine: "e", N: 7}, Released: released}
}

const (
	blue  = "scope/aws/111111111111/eu-west-1"
	green = "scope/aws/111111111111/us-east-1"
	local = "scope/aws/111111111111/eu-west-1/0123456789ab"
	fleet = "source/0123456789ab"
)

func TestWhoOwnsWhat(t *testing.T) {
	var w Watch
	list := []coord.Alive{member("02.b", "two", noon), member("01.a", "one", noon)}
	owners := []coord.Owner{owner(blue, "01.a", "one", false), owner(green, "00.gone", "zero", false), owner(fleet, "02.b", "two", false), owner("scope/aws/9/old", "00.gone", "zero", true)}
	wanted := []Wanted{{blue, []string{"dev"}}, {green, []string{"prod"}}, {local, []string{"test"}}, {fleet, []string{"pools"}}}
	w.See(noon, "one", list, owners, wanted)
	v := w.View()
	if len(v.Members) != 2 || v.Members[0].Name != "one" || !v.Members[0].Answers || v.Members[0].Scopes != 1 || v.Members[1].Sources != 1 || v.Members[1].Answers {
		t.Errorf("members: %+v", v.Members)
	}
	var lines []string
	for _, o := range v.Owned {
		lines = append(lines, strings.Join([]string{o.Key, o.Owner, o.Last, o.Account, o.Region}, " "))
	}
	want := []string{blue + " one  111111111111 eu-west-1", local + "   111111111111 eu-west-1", green + "  zero 111111111111 us-east-1", fleet + " two   "}
	if !slices.Equal(lines, want) {
		t.Errorf("owned:\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
	if o, ok := v.OwnerOf("prod"); !ok || o.Key != green || o.Owner != "" {
		t.Errorf("prod is in %+v", o)
	}
	if _, ok := v.OwnerOf("pools"); ok {
		t.Error("a source is taken for a target")
	}

	// A key without an owner is unowned since it was first seen so, and no longer once
	// somebody owns it.
	w.See(noon.Add(70*time.Second), "one", list, owners, wanted)
	if v = w.View(); len(v.Unowned()) != 2 || v.Longest(noon.Add(70*time.Second)) != 70*time.Second {
		t.Errorf("unowned: %+v", v.Unowned())
	}
	owners[1] = owner(green, "01.a", "one", false)
	owners = append(owners, owner(local, "02.b", "two", false))
	w.See(noon.Add(80*time.Second), "one", list, owners, wanted)
	if v = w.View(); len(v.Unowned()) != 0 || v.Longest(noon.Add(80*time.Second)) != 0 || v.Members[0].Scopes != 2 {
		t.Errorf("unowned: %+v", v.Unowned())
	}
	owners[1].Released = true
	w.See(noon.Add(90*time.Second), "one", list, owners, wanted)
	if v = w.View(); v.Longest(noon.Add(91*time.Second)) != time.Second {
		t.Errorf("what was released is unowned since %s", v.Longest(noon.Add(91*time.Second)))
	}

	// A member that does not know what is wanted shows all that was ever owned.
	var cold Watch
	cold.See(noon, "", list, owners, nil)
	if v := cold.View(); len(v.Owned) != 5 || v.Members[0].Answers {
		t.Errorf("owned: %+v", v.Owned)
	}
}

func TestNamesOfWhatIsOwned(t *testing.T) {
	var w Watch
	w.See(noon, "", nil, nil, []Wanted{{blue, []string{"dev", "twin"}}, {local, []string{"test", "twin"}}, {green, []string{"prod"}}, {fleet, []string{"pools"}}})
	v := w.View()
	for name, want := range map[string]string{
		blue: blue, "aws/111111111111/us-east-1": green, "111111111111/us-east-1": green, "prod": green, "dev": blue, "test": local, "pools": fleet, "0123456789ab": fleet,
		"aws/111111111111/eu-west-1": blue, "111111111111/eu-west-1": "several", "twin": "several", "nope": "none", "": "none", "/": "none",
	} {
		o, err := v.Find(name)
		var unknown *UnknownError
		switch {
		case errors.As(err, &unknown):
			if got := map[bool]string{true: "several", false: "none"}[unknown.Several]; got != want || len(unknown.Names) == 0 {
				t.Errorf("%q: %v", name, err)
			}
		case o.Key != want:
			t.Errorf("%q is %s, want %s", name, o.Key, want)
		}
	}
}

// A clock is compared when a member has just said what it is.
func TestClocks(t *testing.T) {
	var w Watch
	see := func(at time.Duration, clock time.Time) *float64 {
		w.See(noon.Add(at), "one", []coord.Alive{member("01.a", "one", clock), member("02.b", "two", clock)}, nil, nil)
		v := w.View()
		if v.Members[0].Clock != nil {
			t.Error("a member compares its clock with itself")
		}
		return v.Members[1].Clock
	}
	if c := see(0, noon.Add(-25*time.Second)); c != nil {
		t.Errorf("what was said some time ago counts as %v", *c)
	}
	if c := see(10*time.Second, noon.Add(10*time.Second)); c == nil || *c != 0 {
		t.Errorf("a clock that is right: %v", c)
	}
	if c := see(30*time.Second, noon.Add(10*time.Second)); c == nil || *c != 0 {
		t.Errorf("a clock that was right when it was said: %v", c)
	}
	if c := see(40*time.Second, noon.Add(-time.Hour)); c == nil || *c != -3640 {
		t.Errorf("an hour behind: %v", c)
	}
	if v := w.View(); len(v.Far()) != 1 || v.Far()[0].Name != "two" {
		t.Errorf("far: %+v", v.Far())
	}
	var cold Watch
	cold.See(noon, "one", []coord.Alive{member("02.b", "two", noon.Add(time.Hour))}, nil, nil)
	if v := cold.View(); len(v.Far()) != 1 {
		t.Error("a clock that is ahead was said in the future")
	}
}

func TestMovesAreTold(t *testing.T) {
	before := coord.Owner{Key: blue, Member: "zero", Session: "00.gone"}
	released := before
	released.Released = true
	for _, tc := range []struct {
		e                 coord.Event
		kind, event, told string
		text              string
	}{
		{coord.Event{Kind: coord.Took, Key: blue, Before: before}, Scope, TakenOver, "owner-replaced", "one took over scope aws/111111111111/eu-west-1 from zero, which no longer runs"},
		{coord.Event{Kind: coord.Took, Key: blue, Before: released}, Scope, TakenReleased, "owner-changed", "one owns scope aws/111111111111/eu-west-1, which zero released"},
		{coord.Event{Kind: coord.Took, Key: fleet, Before: coord.Owner{Key: fleet}}, Source, TakenNew, "owner-changed", "one owns source 0123456789ab"},
		{coord.Event{Kind: coord.HandedOver, Key: blue, To: "two"}, Scope, HandedOver, "owner-changed", "one hands over scope aws/111111111111/eu-west-1 to two"},
		{coord.Event{Kind: coord.HandedOver, Key: blue}, Scope, HandedOver, "owner-changed", "one hands over scope aws/111111111111/eu-west-1"},
		{coord.Event{Kind: coord.Stuck, Key: blue}, Scope, Stuck, "owner-stuck", "one releases scope aws/111111111111/eu-west-1: it made no progress for 2m0s"},
		{coord.Event{Kind: coord.Lost, Key: blue}, Scope, Lost, "owner-lost", "one lost scope aws/111111111111/eu-west-1, according to the engine"},
		{coord.Event{Kind: coord.Released, Key: blue}, Scope, Released, "", ""},
		{coord.Event{Kind: coord.Joined}, "", "", "member-joined", "one joined"},
		{coord.Event{Kind: coord.Lost}, "", "", "member-lost", "one lost its lease and owns nothing until it gets a new one"},
		{coord.Event{Kind: coord.Lost, Err: errors.New("denied: add this statement to the policy:\n{}")}, "", "", "member-lost", "one lost its lease and owns nothing until it gets a new one: denied: add this statement to the policy"},
		{coord.Event{Kind: coord.Refused, Err: errors.New("x")}, "", "", "", ""},
		{coord.Event{Kind: coord.Refused, Key: blue, Err: errors.New("x")}, "", "", "", ""},
	} {
		kind, event, ok := MoveOf(tc.e)
		if ok != (tc.event != "") || ok && (kind != tc.kind || event != tc.event) {
			t.Errorf("%+v: %s %s %v", tc.e, kind, event, ok)
		}
		told, is := EventOf(tc.e, "one", noon)
		if is != (tc.told != "") || told.Kind != tc.told || told.Text != tc.text {
			t.Errorf("%+v is told as %q: %q", tc.e, told.Kind, told.Text)
		}
		if is && (!slices.Contains(kinds.All(), told.Kind) || told.Time != noon || told.Facts["member"] != "one") {
			t.Errorf("%+v", told)
		}
	}
}
