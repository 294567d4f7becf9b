package pulls

import (
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/report"
)

// heap is what is held, in bytes.
func heap() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// large changes n pools, with user data.
func large(n, size int) map[string]string {
	files := map[string]string{"o/one/kustomization.yaml": "resources: [pool.yaml]\n"}
	var all strings.Builder
	for i := range n {
		all.WriteString("---\n" + pool(fmt.Sprintf("p%03d", i), "maxSize: 3", fmt.Sprintf("maxSize: %d", size)))
	}
	files["o/one/pool.yaml"] = all.String()
	return files
}

// heavy is a proposal of few pools that hold much, as each has many tags of its own: as many
// pools as hold that much without them take kustomize ten times as long.
func heavy() map[string]string {
	files, n := large(70, 7), 0
	text := regexp.MustCompile("(?m)^  minSize: 1$").ReplaceAllStringFunc(files["o/one/pool.yaml"], func(line string) string {
		n++
		line += "\n  additionalTags:"
		for i := range 40 {
			line += fmt.Sprintf("\n    tag-%02d-%s: %s-%03d-%02d", i, strings.Repeat("k", 80), strings.Repeat("v", 200), n, i)
		}
		return line
	})
	files["o/one/pool.yaml"] = text
	return files
}

// The memory for open pull requests does not grow with their number: weir keeps the latest plans to show, and of others what approvals and merges
// need.
func TestKeptPlansAreBounded(t *testing.T) {
	b, _ := started(t, "", ", apply: as-reviewed")
	const pools = 60
	for n := int64(1); n <= 6; n++ {
		b.propose(n, large(pools, 4+int(n)))
	}
	b.w.pulls.kept = 1
	b.round() // all but what is kept has been made once
	few := heap()
	for n := int64(7); n <= 18; n++ {
		b.propose(n, large(pools, 4+int(n)))
	}
	b.display.shown = nil
	b.round()
	told := b.display.shown
	if b.display.shown = nil; len(told) != 12 || len(told[0].Reports) != 1 || len(told[0].Reports[0].Plan.Steps) < pools {
		t.Fatalf("%d were told", len(told))
	}
	one := told[0].Bytes()
	grown := heap() - few
	t.Logf("12 more plans of %d bytes each hold %d bytes", one, grown)
	if grown > 6*one {
		t.Errorf("12 more plans of %d bytes each hold %d bytes", one, grown)
	}
	// It can be approved as it stands on the forge, and is shown again with that.
	k := b.w.pulls.open[3]
	if !k.shown.Unkept || k.shown.Reports != nil {
		t.Fatalf("it is kept: %+v", k.shown)
	}
	b.forge.say(3, "weir-bot", "marker "+report.DigestMarker(k.Digest))
	b.look()
	b.forge.say(3, "writer", "weir approve")
	if b.look(); len(b.approved()) != 1 {
		t.Errorf("approved %v, replies %q", b.approved(), b.forge.replies)
	}
	if p := b.display.last(); p.Number != 3 || p.Approved != "writer" || len(p.Reports) != 1 {
		t.Errorf("told: %+v", p)
	}
	told = b.display.shown
	b.edit(5, func(p *forge.PullRequest) { p.Title = "another title" })
	b.round()
	b.round()
	if p := b.display.last(); len(b.display.shown) == len(told) || p.Number != 5 || p.Title != "another title" || len(p.Reports) != 1 {
		t.Errorf("told: %+v", p)
	}
}

// A proposal that holds much is planned while no other holds much, and those that hold
// little are planned beside it.
func TestOneHeavyReviewAtATime(t *testing.T) {
	b, head := started(t, "", "")
	heavy := b.propose(2, heavy())
	b.w.o.Turns.heavy <- struct{}{} // somebody else's
	h := b.hang()
	b.w.planner.beside = 1
	for range 3 { // it takes no place as it waits
		b.looks(0)
	}
	if got := b.planned(); got[1] != head || got[2] != "" || h.times(heavy) != 1 {
		t.Errorf("planned: %v, begun %d times", got, h.times(heavy))
	}
	<-b.w.o.Turns.heavy
	b.looks(0)
	if got := b.planned(); got[2] != heavy {
		t.Errorf("planned: %v, %+v", got, b.display.last())
	}
	if len(b.w.o.Turns.heavy) != 0 {
		t.Error("it keeps its turn")
	}
}
