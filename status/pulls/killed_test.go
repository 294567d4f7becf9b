package pulls

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/weir-gitops/weir/render/tree"
	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/report"
)

// doomed are the arguments of a process that is killed as it renders a pull request.
type doomed struct {
	Dir, Repo, AWS string
	Pull           forge.PullRequest
}

const doomedEnv = "WEIR_TEST_DOOMED"

// deadly is Git whose merges kill the process that renders them.
type deadly struct{ Git }

func (d deadly) Pull(ctx context.Context, p source.PullRef) (source.Merge, error) {
	m, err := d.Git.Pull(ctx, p)
	m.Snapshot.Tree = deadlyTree{m.Snapshot.Tree}
	return m, err
}

type deadlyTree struct{ tree.Tree }

func (deadlyTree) ReadFile(string) ([]byte, error) {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

// TestDoomed is what runs in the process that is killed.
func TestDoomed(t *testing.T) {
	var d doomed
	if text := os.Getenv(doomedEnv); text == "" {
		t.Skip("TestAReviewThatKilledTheProcess runs it")
	} else if err := json.Unmarshal([]byte(text), &d); err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, dir: d.Dir}
	b.open(d.Repo, d.AWS, "", "")
	b.forge.pulls[d.Pull.Number] = &d.Pull
	b.compose()
	b.w.o.Git = deadly{b.git}
	b.round()
}

// kill kills a process that renders a pull request with this state directory.
func (b *bench) kill(number int64) {
	b.t.Helper()
	if err := b.db.Close(); err != nil {
		b.t.Fatal(err)
	}
	args, err := json.Marshal(doomed{b.dir, b.repo.URL(), b.config.Endpoint, *b.forge.pulls[number]})
	if err != nil {
		b.t.Fatal(err)
	}
	c := exec.CommandContext(b.t.Context(), os.Args[0], "-test.run=^TestDoomed$")
	c.Env = append(os.Environ(), doomedEnv+"="+string(args))
	out, err := c.CombinedOutput()
	var exit *exec.ExitError
	if ended, ok := c.ProcessState.Sys().(syscall.WaitStatus); !errors.As(err, &exit) || !ok || ended.Signal() != syscall.SIGKILL {
		b.t.Fatalf("it was not killed: %v\n%s", err, out)
	}
	b.openState()
	b.compose()
}

// A review that killed the process is not begun again by itself: it is told, with the way
// out, and what others propose is planned.
func TestAReviewThatKilledTheProcess(t *testing.T) {
	b, head := started(t, "", "")
	b.kill(1)
	other := b.propose(2, wider(2))
	h := b.hang()
	for range 2 {
		if b.round(); h.times(head) != 0 {
			t.Fatal("it is tried again")
		}
	}
	var told report.Pull
	for _, p := range b.display.shown {
		if p.Number == 1 {
			told = p
		}
	}
	if told.State != report.PullFailing || !strings.Contains(told.Reason, "push another commit, or comment weir plan") || told.HeadSHA != head {
		t.Errorf("told: %+v", told)
	}
	if n := len(b.display.shown); n != 2 || b.planned()[2] != other {
		t.Errorf("%d times told, planned %v", n, b.planned())
	}
	// Neither a restart nor a commit that is followed changes that.
	b.restart()
	b.w.o.Git = h
	b.main(map[string]string{"README.md": "x"})
	b.compose()
	if b.round(); h.times(head) != 0 {
		t.Fatal("it is tried again after another restart")
	}
	b.forge.say(1, "reader", "weir plan")
	if b.look(); h.times(head) != 0 {
		t.Fatal("who may not have it planned has it tried again")
	}
	b.forge.say(1, "writer", "weir plan")
	if b.look(); b.planned()[1] != head {
		t.Errorf("told: %+v", b.display.last())
	}
	// It ended, and so did what was noted.
	b.restart()
	b.w.o.Git = h
	begun := h.times(head)
	if b.round(); h.times(head) == begun || b.planned()[1] != head {
		t.Errorf("a restart after that does not plan it: %+v", b.display.last())
	}
}

func TestANewCommitOfAReviewThatKilledTheProcess(t *testing.T) {
	b, _ := started(t, "", "")
	b.kill(1)
	b.round()
	next := b.propose(1, wider(5))
	if b.round(); b.planned()[1] != next {
		t.Errorf("told: %+v", b.display.last())
	}
}

// Without a place to note it, nothing is begun that may be begun for ever.
func TestNothingIsReviewedThatCannotBeNoted(t *testing.T) {
	b, _ := started(t, "", "")
	if err := b.db.Close(); err != nil {
		t.Fatal(err)
	}
	if b.round(); b.display.last().State != report.PullFailing || !strings.Contains(b.display.last().Reason, "state cannot be written") {
		t.Errorf("told: %+v", b.display.last())
	}
}
