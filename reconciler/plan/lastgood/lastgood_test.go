package lastgood_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/reconciler/plan/lastgood"
)

func TestOrder(t *testing.T) {
	t.Parallel()
	r := lastgood.Record{Begun: lastgood.Mark{Revision: "c"}, Reached: lastgood.Mark{Revision: "a"}}
	for _, tt := range []struct {
		record  lastgood.Record
		head    string
		parents []string
		want    string
	}{
		{lastgood.Record{}, "h", nil, ""},
		{lastgood.Record{}, "h", []string{"d", "c"}, "d c"},
		{r, "h", []string{"d", "c", "b", "a"}, "c a d b"},
		{r, "c", []string{"b"}, "a b"}, // the configuration broke what the commit had rendered to
		{lastgood.Record{Begun: r.Begun, Reached: r.Begun}, "h", nil, "c"},
	} {
		if got := strings.Join(tt.record.Order(tt.head, tt.parents), " "); got != tt.want {
			t.Errorf("before %s: %q, want %q", tt.head, got, tt.want)
		}
	}
	var many []string
	for i := range 300 {
		many = append(many, fmt.Sprint("p", i))
	}
	if got := r.Order("h", many); len(got) != lastgood.MaxParents+2 || got[len(got)-1] != "p99" {
		t.Errorf("%d are tried, the last is %s", len(got), got[len(got)-1])
	}
}

// A record changes where something else is wanted, and for no other reason.
func TestRecordIsWrittenOnChange(t *testing.T) {
	t.Parallel()
	mark := func(revision, wants, network string) lastgood.Mark {
		return lastgood.Mark{Revision: revision, Wants: wants, Network: network}
	}
	r := lastgood.Record{}.Begin(mark("1", "a", ""))
	same := func(what string, next lastgood.Record) {
		t.Helper()
		if !next.Same(r) {
			t.Errorf("%s changed %+v to %+v", what, r, next)
		}
	}
	same("the same again", r.Begin(mark("1", "a", "")))
	same("a commit that changes nothing", r.Begin(mark("2", "a", "")))
	if r.ConvergedNetwork("a") != "" {
		t.Error("settled before it converged")
	}
	r = r.Reach(mark("2", "a", "n"))
	if r.Begun.Revision != "1" || r.Reached.Revision != "2" || r.ConvergedNetwork("a") != "n" || r.ConvergedNetwork("b") != "" {
		t.Errorf("after it converged: %+v", r)
	}
	same("convergence at a commit that changes nothing", r.Reach(mark("3", "a", "n")))
	next := r.Begin(mark("4", "b", ""))
	if next.Begun.Revision != "4" || next.Reached.Revision != r.Reached.Revision || !next.Recorded("4") || !next.Recorded("2") || next.Recorded("1") || next.Recorded("") {
		t.Errorf("a commit that changes something: %+v", next)
	}
	if next.ConvergedNetwork("a") != "" || next.ConvergedNetwork("b") != "" {
		t.Error("settled though something else was begun")
	}
	if back := next.Begin(mark("5", "a", "")); back.ConvergedNetwork("a") != "" || back.Reach(mark("5", "a", "n")).ConvergedNetwork("a") != "n" {
		t.Errorf("taken back before it converged: %+v", back)
	}
}

// Of each group that is there the last refresh that weir cancelled is known, and commits
// change nothing about that.
func TestRecordOfCancelledRefreshes(t *testing.T) {
	t.Parallel()
	all := func(string) bool { return true }
	r := lastgood.Record{}.Cancel(map[string]string{"a": "1", "b": "2"}, all)
	r = r.Begin(lastgood.Mark{Revision: "c", Wants: "w"}).Cancel(map[string]string{"a": "3"}, all)
	if !maps.Equal(r.Cancelled, map[string]string{"a": "3", "b": "2"}) || !r.Cancel(map[string]string{"a": "3"}, all).Same(r) {
		t.Errorf("%v", r.Cancelled)
	}
	if r = r.Cancel(map[string]string{"c": "4"}, func(group string) bool { return group != "b" }); !maps.Equal(r.Cancelled, map[string]string{"a": "3", "c": "4"}) {
		t.Errorf("once b is gone: %v", r.Cancelled)
	}
	for i := range 3000 {
		r = r.Cancel(map[string]string{fmt.Sprint(i): "x"}, all)
	}
	if r = r.Cancel(map[string]string{"last": "5"}, all); len(r.Cancelled) > 2000 || r.Cancelled["last"] != "5" {
		t.Errorf("%d are kept, and the last is %q", len(r.Cancelled), r.Cancelled["last"])
	}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	fits := lastgood.Pool{Key: "d/a", Exists: true, Recorded: true, Hash: "h"}
	with := func(change func(p *lastgood.Pool)) lastgood.Pool {
		p := fits
		change(&p)
		return p
	}
	other := with(func(p *lastgood.Pool) { p.Key, p.Recorded = "d/b", false })
	absent := with(func(p *lastgood.Pool) { p.Key, p.Exists, p.Recorded = "d/c", false, false })
	bad := with(func(p *lastgood.Pool) { p.Bad = []string{"g", "h"} })
	unclear := with(func(p *lastgood.Pool) { p.Key, p.Unclear = "d/u", "no answer" })
	for name, tt := range map[string]struct {
		c    lastgood.Candidate
		want lastgood.Answer
		why  string
	}{
		"all as recorded":               {lastgood.Candidate{Pools: []lastgood.Pool{fits, absent}}, lastgood.Fits, ""},
		"one pool of several":           {lastgood.Candidate{Pools: []lastgood.Pool{fits, other}}, lastgood.Differs, "pool d/b"},
		"bad, though recorded":          {lastgood.Candidate{Recorded: true, Pools: []lastgood.Pool{bad}}, lastgood.Differs, "found bad"},
		"another hash of it is bad":     {lastgood.Candidate{Pools: []lastgood.Pool{with(func(p *lastgood.Pool) { p.Bad = []string{"g"} })}}, lastgood.Fits, ""},
		"bad, and not to be told":       {lastgood.Candidate{Pools: []lastgood.Pool{bad, unclear}}, lastgood.Differs, "found bad"},
		"not to be told":                {lastgood.Candidate{Pools: []lastgood.Pool{fits, unclear}}, lastgood.Unclear, "d/u: no answer"},
		"another pool exists":           {lastgood.Candidate{Pools: []lastgood.Pool{fits}, Unwanted: []string{"d/x"}}, lastgood.Differs, "d/x"},
		"existed when it was applied":   {lastgood.Candidate{Recorded: true, Pools: []lastgood.Pool{fits}, Unwanted: []string{"d/x"}}, lastgood.Fits, ""},
		"nothing exists":                {lastgood.Candidate{Pools: []lastgood.Pool{absent}}, lastgood.Nothing, "nothing"},
		"only what it no longer has":    {lastgood.Candidate{Unwanted: []string{"d/x"}}, lastgood.Differs, "d/x"},
		"a pool that is none in AWS":    {lastgood.Candidate{Pools: []lastgood.Pool{fits, with(func(p *lastgood.Pool) { p.Exists, p.Unclear = false, "?" })}}, lastgood.Fits, ""},
		"no pool at all, nothing there": {lastgood.Candidate{Recorded: true}, lastgood.Nothing, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := lastgood.Judge(tt.c)
			if got.Answer != tt.want || !strings.Contains(got.Why, tt.why) || (got.Why == "") != (got.Answer == lastgood.Fits) {
				t.Errorf("got %+v, want %s because of %q", got, tt.want, tt.why)
			}
			slices.Reverse(tt.c.Pools)
			if again := lastgood.Judge(tt.c); again.Answer != tt.want {
				t.Errorf("in another order: %+v", again)
			}
		})
	}
}
