package comments

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/report"
	"github.com/weir-gitops/weir/status/statustest"
)

// only is weir's only comment on the forge.
func (f *memoryPulls) only(t *testing.T) forge.Comment {
	t.Helper()
	f.Mu.Lock()
	defer f.Mu.Unlock()
	if len(f.comments) != 1 {
		t.Fatalf("comments: %+v", f.comments)
	}
	return f.comments[0]
}

// tamper has somebody else edit weir's comment.
func (f *memoryPulls) tamper(change func(string) string) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	f.comments[0].Body, f.comments[0].UpdatedAt = change(f.comments[0].Body), time.Now()
}

// What somebody else made of weir's comment is noticed and written anew, whatever it is, in
// this process and in the next one.
func TestACommentThatSomebodyEditedIsWrittenAnew(t *testing.T) {
	same := func(s string) string { return s }
	for name, tt := range map[string]struct {
		change func(string) string
		anew   bool // by another process
		want   bool
	}{
		"nothing happened":                     {nil, false, false},
		"nothing happened, anew":               {nil, true, false},
		"another text":                         {func(s string) string { return strings.Replace(s, "web", "nothing", 1) }, false, true},
		"another text, anew":                   {func(s string) string { return strings.Replace(s, "web", "nothing", 1) }, true, true},
		"edited and edited back":               {same, false, true},
		"edited and edited back, anew":         {same, true, true},
		"without the marker":                   {func(string) string { return "Nothing to see here." }, false, true},
		"without the marker, anew":             {func(string) string { return "Nothing to see here." }, true, true},
		"far behind what a list has":           {func(s string) string { return s + strings.Repeat(" ", 3000) + "x" }, false, true},
		"line ends, which a forge may convert": {func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") }, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, dir := newMemoryPulls(), t.TempDir()
				p := startPulls(t, dir, f)
				p.Show(small(report.PullPlanned, ""))
				statustest.WaitIdle()
				was := f.only(t)
				if intact, edited := p.Written("fleet", was, true); !intact || edited {
					t.Errorf("as weir wrote it: %t, %t", intact, edited)
				}
				if tt.change != nil {
					f.tamper(tt.change)
				}
				if tt.anew {
					p.kill()
					p = startPulls(t, dir, f)
				}
				if intact, edited := p.Written("fleet", f.only(t), true); intact == tt.want || edited != tt.want {
					t.Errorf("before weir looks at it: %t, %t", intact, edited)
				}
				f.took()
				p.Again("fleet", 12)
				p.Show(small(report.PullPlanned, ""))
				statustest.WaitIdle()
				if calls := f.took(); strings.Contains(calls, "edit") != tt.want || strings.Contains(calls, "create") {
					t.Errorf("calls: %s", calls)
				}
				now := f.only(t)
				if now.Body != was.Body || now.ID != was.ID {
					t.Errorf("it says %s", now.Body)
				}
				if intact, edited := p.Written("fleet", now, true); !intact || edited {
					t.Errorf("after that: %t, %t", intact, edited)
				}
				if intact, edited := p.Written("fleet", was, true); tt.want && (intact || edited) {
					t.Errorf("a list from before: %t, %t", intact, edited)
				}
			})
		})
	}
}

func TestACommentThatSomebodyDeletedComesBack(t *testing.T) {
	for name, tt := range map[string]struct {
		state report.PullState
		again bool
		anew  bool
		want  bool
	}{
		"on weir plan and on an approval": {report.PullPlanned, true, false, true},
		"at a restart":                    {report.PullPlanned, false, true, true},
		"on the merge":                    {report.PullMerged, false, false, true},
		"on the merge, anew":              {report.PullMerged, false, true, true},
		"not once it is closed":           {report.PullClosed, false, false, false},
		"not while nobody asks":           {report.PullPlanned, false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, dir := newMemoryPulls(), t.TempDir()
				p := startPulls(t, dir, f)
				p.Show(small(report.PullPlanned, ""))
				statustest.WaitIdle()
				f.Mu.Lock()
				f.comments = nil
				f.Mu.Unlock()
				if tt.anew {
					p.kill()
					p = startPulls(t, dir, f)
				}
				if tt.again {
					p.Again("fleet", 12)
				}
				p.Show(small(tt.state, ""))
				statustest.WaitIdle()
				if got := len(f.leads()) == 1; got != tt.want {
					t.Errorf("comments: %v", f.leads())
				}
			})
		})
	}
	// One that was never there does not come with the merge.
	synctest.Test(t, func(t *testing.T) {
		f := newMemoryPulls()
		p := startPulls(t, t.TempDir(), f)
		p.Show(small(report.PullMerged, ""))
		statustest.WaitIdle()
		if len(f.leads()) != 0 {
			t.Errorf("comments: %v", f.leads())
		}
	})
}
