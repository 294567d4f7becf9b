package statustest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/wording"
)

// Forge is a fake forge that keeps statuses in memory, so that tests can control time.
type Forge struct {
	Mu      sync.Mutex
	posted  []string // "sha7 context state: description", in order
	Now     map[string]map[string]forge.CommitStatus
	Reads   int
	Fail    func(sha string, s forge.CommitStatus) error // makes writes fail
	Lose    func(sha string, s forge.CommitStatus) error // replaces the responses of successful writes
	Limited forge.Limits
}

func NewForge() *Forge {
	return &Forge{Now: map[string]map[string]forge.CommitStatus{}, Limited: forge.Limits{Context: 255, Description: 140}}
}

func (f *Forge) Profile() forge.Profile {
	return forge.Profile{Kind: "memory", Label: "memory", Limits: f.Limited}
}

func (f *Forge) SetStatus(_ context.Context, sha string, s forge.CommitStatus) error {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	if f.Fail != nil {
		if err := f.Fail(sha, s); err != nil {
			return err
		}
	}
	if f.Now[sha] == nil {
		f.Now[sha] = map[string]forge.CommitStatus{}
	}
	f.Now[sha][s.Context] = s
	f.posted = append(f.posted, fmt.Sprintf("%s %s %s: %s", wording.Short(sha), s.Context, s.State, s.Description))
	if f.Lose != nil {
		return f.Lose(sha, s)
	}
	return nil
}

func (f *Forge) Statuses(_ context.Context, sha string) (map[string]forge.CommitStatus, error) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	f.Reads++
	out := map[string]forge.CommitStatus{}
	for k, v := range f.Now[sha] {
		out[k] = v
	}
	return out, nil
}

// FailWith makes writes fail as fail decides, until it is called again.
func (f *Forge) FailWith(fail func(sha string, s forge.CommitStatus) error) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	f.Fail = fail
}

// LoseWith makes lose decide the responses of successful writes.
func (f *Forge) LoseWith(lose func(sha string, s forge.CommitStatus) error) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	f.Lose = lose
}

// Log returns the posted statuses, in order.
func (f *Forge) Log() []string {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	return slices.Clone(f.posted)
}

// Shows returns the statuses of a commit as the forge shows them: state and description by context.
func (f *Forge) Shows(sha string) map[string]string {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	out := map[string]string{}
	for k, s := range f.Now[sha] {
		out[k] = string(s.State) + ": " + s.Description
	}
	return out
}

func (f *Forge) AnyPending() (out []string) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	for sha, contexts := range f.Now {
		for name, s := range contexts {
			if s.State == forge.Pending {
				out = append(out, wording.Short(sha)+" "+name)
			}
		}
	}
	return out
}

func WaitIdle() { time.Sleep(time.Second); synctest.Wait() }

func WantShown(t *testing.T, f *Forge, sha string, want map[string]string) {
	t.Helper()
	if diff := cmp.Diff(want, f.Shows(sha)); diff != "" {
		t.Errorf("statuses of %s (-want +got):\n%s", wording.Short(sha), diff)
	}
}
