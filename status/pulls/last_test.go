package pulls

import (
	"errors"
	"testing"

	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/report"
)

// The last word on a pull request is kept until the forge has it. Who speaks for the source next brings it there, and shows the pull request as open to
// nobody.
func TestTheLastWordIsKept(t *testing.T) {
	for name, state := range map[string]report.PullState{"closed": report.PullClosed, "merged": report.PullMerged} {
		t.Run(name, func(t *testing.T) {
			b, head := started(t, "", "")
			b.round()
			if b.display.last().State != report.PullPlanned {
				t.Fatalf("got %+v", b.display.last())
			}
			b.display.owes = true
			if state == report.PullMerged {
				b.merge(1, head)
				b.converge()
			} else {
				b.forge.pulls[1].State = forge.Closed
				b.forge.version++
			}
			b.round()
			b.round()
			if last := b.display.last(); last.State != state || len(b.w.pulls.open) > 0 {
				t.Fatalf("it ended as %+v, and is open: %v", last, b.w.pulls.open)
			}
			shown := len(b.display.shown)

			// Again and again the process ends before the forge has it; and the forge is away for a while.
			for i := range 3 {
				b.restart()
				b.forge.err = errors.New("away")
				b.round()
				if n := len(b.display.delivered); n != i {
					t.Fatalf("delivered %d times before the list was read", n)
				}
				b.forge.err = nil
				b.round()
				b.round()
				if n := len(b.display.delivered); n != i+1 {
					t.Fatalf("restarted %d times, delivered %d times", i+1, n)
				}
			}
			if got := b.display.delivered[0]; got.State != state || got.Number != 1 || len(got.Reports) > 0 || state == report.PullMerged && (!got.Compared || !got.Unkept) {
				t.Errorf("delivered %+v", got)
			}
			if len(b.display.shown) != shown || len(b.w.pulls.open) > 0 {
				t.Errorf("shown once more: %+v", b.display.shown[shown:])
			}
			b.display.owes = false
			b.round()
			if known, err := b.w.pulls.all(); err != nil || len(known)+len(b.w.pulls.left) > 0 {
				t.Errorf("remembered for ever: %v, %v", known, err)
			}
		})
	}
}

// What was opened again before the next one speaks has not ended.
func TestTheLastWordOfWhatIsOpenAgain(t *testing.T) {
	b, _ := started(t, "", "")
	b.round()
	b.display.owes = true
	b.forge.pulls[1].State = forge.Closed
	b.forge.version++
	b.round()
	b.forge.pulls[1].State = forge.Open
	b.forge.version++
	b.restart()
	b.round()
	b.round()
	if last := b.display.last(); len(b.display.delivered) > 0 || last.State != report.PullPlanned {
		t.Errorf("delivered %+v, shown last %+v", b.display.delivered, last)
	}
	if known, err := b.w.pulls.all(); err != nil || len(known) != 1 || known[0].Left || known[0].Last != nil {
		t.Errorf("recorded %+v, %v", known, err)
	}
}
