package pulls

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/forge/forgehttp"
)

// shownPlan has a plan that waits for an approval, and its comment on the forge.
func shownPlan(t *testing.T) *bench {
	t.Helper()
	b, _ := started(t, "", ", apply: as-reviewed")
	b.round()
	b.publish()
	return b
}

// wantReplies checks what weir answered so far.
func (b *bench) wantReplies(want ...string) {
	b.t.Helper()
	if len(b.forge.replies) != len(want) {
		b.t.Fatalf("replies: %q, want %q", b.forge.replies, want)
	}
	for i, w := range want {
		if !strings.Contains(b.forge.replies[i], w) {
			b.t.Errorf("reply %d: %q, want %q", i, b.forge.replies[i], w)
		}
	}
}

// A command counts only as its author first wrote it, whoever edited it, whatever shows it.
func TestAnEditedCommentIsNoCommand(t *testing.T) {
	const approve, harmless = "weir approve", "Looks good, but let us wait."
	heard := func(b *bench, id int64, body string, edited bool) {
		b.w.Heard(1, forge.Heard{ID: id, Sum: forge.SumOf(body), Edited: edited})
	}
	for name, tt := range map[string]struct {
		first string
		do    func(b *bench, id int64)
		want  string // the answer, "" if it is obeyed
	}{
		"as it was written": {approve, func(*bench, int64) {}, ""},
		"edited":            {harmless, func(b *bench, id int64) { b.forge.edit(id, approve) }, "Write a new comment"},
		"edited by its author before weir read it": {"weir aprove", func(b *bench, id int64) { b.forge.edit(id, approve) }, "Write a new comment"},
		"edited and edited back": {approve, func(b *bench, id int64) {
			b.forge.edit(id, harmless)
			b.forge.edit(id, approve)
		}, "Write a new comment"},
		"the forge marks an edit that the times do not show": {approve, func(b *bench, id int64) {
			b.forge.edits = map[int64]forge.Edits{id: forge.Edited}
		}, "Write a new comment"},
		"something else happened to it": {approve, func(b *bench, id int64) {
			b.forge.comments[id-1].UpdatedAt = b.now().Add(time.Second)
			b.forge.edits = map[int64]forge.Edits{id: forge.Unedited}
		}, ""},
		"the webhook had another text": {harmless, func(b *bench, id int64) {
			heard(b, id, harmless, false)
			b.forge.comments[id-1].Body = approve // within the second in which it was written
		}, "Write a new comment"},
		"a webhook reported an edit": {approve, func(b *bench, id int64) {
			heard(b, id, approve, true)
		}, "Write a new comment"},
		"the edit was reported before the comment": {approve, func(b *bench, id int64) {
			heard(b, id, approve, true)
			heard(b, id, harmless, false)
		}, "Write a new comment"},
		"the forge does not show edits": {approve, func(b *bench, id int64) {
			b.forge.edits = map[int64]forge.Edits{id: forge.EditsUnknown}
		}, "Set up the webhook"},
		"the forge does not show edits, the webhook had the text": {approve, func(b *bench, id int64) {
			b.forge.edits = map[int64]forge.Edits{id: forge.EditsUnknown}
			heard(b, id, approve, false)
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := shownPlan(t)
			id := b.forge.say(1, "writer", tt.first)
			b.clock = b.clock.Add(time.Second)
			tt.do(b, id)
			b.look()
			b.look()
			b.restart()
			b.look()
			if obeyed := len(b.approved()) == 1; obeyed != (tt.want == "") {
				t.Errorf("approved: %v, replies %q", b.approved(), b.forge.replies)
			}
			if tt.want != "" {
				b.wantReplies(tt.want)
			}
		})
	}
}

// weir was away for a minute: the comment that it had read before is another one now.
func TestAnEditAfterTheReadIsAnsweredOnce(t *testing.T) {
	b := shownPlan(t)
	id := b.forge.say(1, "writer", "What does this do?")
	other := b.forge.say(1, "reader", "Nothing good.")
	done := b.forge.say(1, "writer", "weir plan")
	b.look()
	b.clock = b.clock.Add(time.Minute)
	b.forge.edit(id, "weir approve")
	b.forge.edit(other, "weir approve")
	b.forge.edit(done, "weir plan\n\nplease") // it did what it says
	for range 3 {
		b.look()
	}
	b.restart()
	b.look()
	if len(b.approved()) != 0 {
		t.Errorf("approved: %v", b.approved())
	}
	b.wantReplies("Write a new comment")
	b.clock = b.clock.Add(time.Minute)
	b.forge.edit(done, "weir approve")
	b.look()
	b.look()
	b.wantReplies("Write a new comment", "Write a new comment")
}

// A comment that weir has read is edited in the second in which it was written, so that its
// times are equal. The webhook shows the edit; without it nothing does, and weir does nothing.
func TestAnEditInTheSameSecondAfterTheRead(t *testing.T) {
	b := shownPlan(t)
	id, other := b.forge.say(1, "writer", "What does this do?"), b.forge.say(1, "reader", "Nothing good.")
	b.look()
	for _, of := range []int64{id, other} {
		c := &b.forge.comments[of-1]
		if c.Body = "weir approve"; !c.UpdatedAt.Equal(c.CreatedAt) {
			t.Fatal("the times of the comment differ")
		}
	}
	b.look()
	b.wantReplies()
	for _, of := range []int64{id, other} {
		b.w.Heard(1, forge.Heard{ID: of, Sum: forge.SumOf("weir approve"), Edited: true})
	}
	for range 3 {
		b.look()
	}
	b.restart()
	b.look()
	b.wantReplies("Write a new comment") // whoever may not write gets no answer
	if len(b.approved()) != 0 {
		t.Errorf("approved: %v", b.approved())
	}
}

// What somebody else made of weir's comment may have been read for the plan.
func TestAPlanThatSomebodyEditedIsNotApproved(t *testing.T) {
	b := shownPlan(t)
	own := int64(1)
	b.display.edited = map[int64]bool{own: true}
	shown := len(b.display.shown)
	b.forge.edit(own, "marker Nothing happens. "+b.forge.comments[0].Body)
	b.look()
	if b.display.again != 1 || len(b.display.shown) != shown+1 {
		t.Errorf("weir's comment is to be written anew %d times, shown %d times more", b.display.again, len(b.display.shown)-shown)
	}
	b.look()
	if b.display.again != 1 {
		t.Error("weir writes the comment anew at every poll")
	}
	b.clock = b.clock.Add(time.Second)
	b.forge.say(1, "writer", "weir approve")
	b.look()
	if len(b.approved()) != 0 || b.display.again != 2 {
		t.Errorf("approved: %v, to be written anew %d times", b.approved(), b.display.again)
	}
	b.wantReplies("Somebody edited the comment with the plan")
	kinds := ""
	for _, e := range b.events {
		kinds += e.Kind + " "
	}
	if !strings.Contains(kinds, "comment-edited") {
		t.Errorf("events: %s", kinds)
	}
	// Written anew, in the second of the next approval: nobody can have read it.
	b.display.edited = nil
	b.forge.edit(own, "marker "+b.forge.comments[0].Body)
	b.forge.say(1, "writer", "weir approve")
	b.look()
	b.wantReplies("Somebody edited", "Read the new plan")
	b.forge.say(1, "writer", "weir approve")
	if b.look(); len(b.approved()) != 1 {
		t.Errorf("approved: %v, replies %q", b.approved(), b.forge.replies)
	}
}

// A comment that is not there is never called a plan that changed.
func TestAPlanThatSomebodyDeletedComesBack(t *testing.T) {
	b := shownPlan(t)
	b.forge.comments[0].Number = 99
	b.forge.say(1, "writer", "weir approve")
	b.look()
	b.wantReplies("was deleted. weir writes it again")
	if b.display.again != 1 {
		t.Errorf("to be written anew %d times", b.display.again)
	}
	b.display.owes = true
	b.forge.say(1, "writer", "weir approve")
	b.look()
	b.wantReplies("was deleted", "is not shown on this pull request yet")
	shown := len(b.display.shown)
	b.forge.say(1, "writer", "weir plan")
	b.look()
	if b.display.again != 2 || len(b.display.shown) == shown || len(b.approved()) != 0 {
		t.Errorf("to be written anew %d times, shown %d times, approved %v", b.display.again, len(b.display.shown)-shown, b.approved())
	}
}

// A token that may not read what users may do is said where the command was given.
func TestAMissingRightIsAnsweredOnce(t *testing.T) {
	b := shownPlan(t)
	b.forge.forbidden = &forgehttp.Error{Status: http.StatusForbidden, Fault: forgehttp.FaultDenied, Message: "the token may not ask what a user may do: it needs an administrator"}
	for range 3 {
		b.forge.say(1, "writer", "weir approve")
		b.look()
	}
	b.restart()
	b.forge.say(1, "writer", "weir plan")
	b.look()
	b.wantReplies("weir cannot act on comments here: the token may not ask what a user may do: it needs an administrator.")
	if len(b.forge.reacted) != 4 || len(b.approved()) != 0 {
		t.Errorf("reacted %v, approved %v", b.forge.reacted, b.approved())
	}
	b.round()
	b.publish()
	b.forge.forbidden = nil
	b.forge.say(1, "writer", "weir approve")
	if b.look(); len(b.approved()) != 1 {
		t.Errorf("approved: %v, replies %q", b.approved(), b.forge.replies)
	}
}

func TestANearMissGetsAHint(t *testing.T) {
	b := shownPlan(t)
	b.forge.say(1, "writer", "/weir approve")
	b.look()
	b.wantReplies("Write `weir approve` alone on the first line")
	if len(b.approved()) != 0 {
		t.Errorf("approved: %v", b.approved())
	}
}

func TestForksThatAreOffSayItOnce(t *testing.T) {
	b, _ := started(t, "", "", func(p *forge.PullRequest) { p.Fork = true })
	b.round()
	if got := b.display.last().Reason; got != "pull requests from forks are not planned here: push its branch to this repository, or set pullRequests.forks.allowBy" {
		t.Errorf("told: %s", got)
	}
	for range 3 {
		b.forge.say(1, "writer", "weir plan")
		b.look()
		b.clock = b.clock.Add(2 * time.Minute)
	}
	b.wantReplies("Pull requests from forks are not planned here: push its branch")
}
