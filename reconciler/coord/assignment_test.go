package coord

import (
	"testing"
	"time"
)

// TestDecide lists all cases of a member's action on a key.
func TestDecide(t *testing.T) {
	const random = 700 * time.Millisecond
	for name, tc := range map[string]struct {
		given situation
		want  decision
	}{
		"its own key, which placement leaves here":                {situation{owner: ownedHere, proposed: thisMember, ownedFor: time.Hour}, leave},
		"its own key, and no member is proposed":                  {situation{owner: ownedHere, proposed: noMember, ownedFor: time.Hour}, leave},
		"its own key, proposed elsewhere since a moment":          {situation{owner: ownedHere, proposed: otherMember, ownedFor: time.Hour, movingFor: Steady - 1}, leave},
		"its own key, proposed elsewhere for long":                {situation{owner: ownedHere, proposed: otherMember, ownedFor: time.Hour, movingFor: Steady}, handOver},
		"its own key, taken a moment ago, proposed elsewhere":     {situation{owner: ownedHere, proposed: otherMember, ownedFor: Settle - 1, movingFor: Steady}, leave},
		"the same, where a person chose the other member":         {situation{owner: ownedHere, proposed: otherMember, ownedFor: Settle - 1, movingFor: Steady, pinned: true}, handOver},
		"a person's choice waits as well until it is steady":      {situation{owner: ownedHere, proposed: otherMember, ownedFor: time.Hour, movingFor: Steady - 1, pinned: true}, leave},
		"its own key, whose work is stopping":                     {situation{owner: stoppingHere, proposed: thisMember}, leave},
		"another member's key":                                    {situation{owner: ownedElsewhere, proposed: otherMember}, leave},
		"another member's key that this one will get":             {situation{owner: ownedElsewhere, proposed: thisMember}, pollSooner},
		"the same, but this member drains":                        {situation{owner: ownedElsewhere, proposed: thisMember, draining: true}, leave},
		"the same, but the owner has not handed it over for long": {situation{owner: ownedElsewhere, proposed: thisMember, movingFor: Steady + StopWithin}, leave},
		"a vacant key that is proposed for this member":           {situation{owner: vacant, proposed: thisMember, random: random}, take},
		"the same vacant key, but this member drains":             {situation{owner: vacant, proposed: thisMember, draining: true, vacantFor: time.Hour}, leave},
		"a vacant key that is proposed for another member":        {situation{owner: vacant, proposed: otherMember, vacantFor: Grace + random - 1, random: random}, leave},
		"the same, but that member has not taken it":              {situation{owner: vacant, proposed: otherMember, vacantFor: Grace + random, random: random}, take},
		"a vacant key, and no member is proposed":                 {situation{owner: vacant, proposed: noMember, vacantFor: Grace}, take},
		"a vacant key that this member was stuck on":              {situation{owner: vacant, proposed: thisMember, avoided: true, vacantFor: avoidGrace - 1}, leave},
		"the same, but no other member has taken it":              {situation{owner: vacant, proposed: thisMember, avoided: true, vacantFor: avoidGrace}, take},
	} {
		if got := decide(tc.given); got != tc.want {
			t.Errorf("%s: %s; want: %s", name, got, tc.want)
		}
	}
}

// TestWaitingTimes: a waiting time starts with the situation that it is about, and ends with it.
func TestWaitingTimes(t *testing.T) {
	at := func(s time.Duration) Instant {
		return Instant{Mono: time.Hour + s*time.Second, Boot: time.Hour + s*time.Second}
	}
	dead := Owner{Key: "k", Member: "x", Session: "1", Epoch: Epoch{N: 1}}
	again := Owner{Key: "k", Member: "y", Session: "2", Epoch: Epoch{N: 2}}
	a := &assignment{member: "a", random: func(n int64) int64 { return n - 1 }, vacant: map[string]vacancy{}, moving: map[string]move{}}
	for i, tc := range []struct {
		after         time.Duration
		owner         ownership
		last          Owner
		to            string
		vacant, moves time.Duration
	}{
		{0, ownedHere, dead, "b", 0, 0},
		{2, ownedHere, dead, "b", 0, 2 * time.Second},
		{4, ownedHere, dead, "c", 0, 0}, // another proposal
		{5, ownedHere, dead, "a", 0, 0}, // it stays here
		{6, ownedHere, dead, "c", 0, 0},
		{7, vacant, dead, "b", 0, 0},
		{9, vacant, dead, "b", 2 * time.Second, 0},
		{10, vacant, again, "b", 0, 0}, // it was owned in between
		{12, ownedElsewhere, again, "a", 0, 0},
		{13, ownedElsewhere, again, "a", 0, time.Second},
		{14, vacant, again, "a", 0, 0},
		{40, vacant, again, "a", 0, 0}, // nothing was observed for the length of a lease
	} {
		a.start(at(tc.after), TTL)
		got := a.observe(situation{owner: tc.owner}, tc.last, tc.to, at(tc.after))
		if got.vacantFor != tc.vacant || got.movingFor != tc.moves {
			t.Errorf("observation %d: vacant for %s, moving for %s; want %s, %s", i, got.vacantFor, got.movingFor, tc.vacant, tc.moves)
		}
		if want := PollEvery - 1; tc.owner == vacant && got.random != want {
			t.Errorf("observation %d: random %s, want %s", i, got.random, want)
		}
	}
}

// TestQuietAfter lists all waiting times of a new owner.
func TestQuietAfter(t *testing.T) {
	in := func(engine string, released bool) Owner {
		return Owner{Key: "k", Session: "1", Epoch: Epoch{Engine: engine, N: 1}, Released: released}
	}
	for name, tc := range map[string]struct {
		seen Owner
		want time.Duration
	}{
		"nobody owned it, or the engine has forgotten who": {Owner{Key: "k"}, TTL + Quiet},
		"its owner released it":                            {in("e", true), 0},
		"its owner released it in another engine":          {in("restored", true), TTL + Quiet},
		"its owner's session ended a second ago":           {in("e", false), Quiet - time.Second},
		"its owner's session was of another engine":        {in("restored", false), TTL + Quiet},
	} {
		if got := quietAfter(in("e", false), tc.seen, time.Second, TTL); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}
