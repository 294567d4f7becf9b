package read

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler/observed"
)

// What has not changed since the last whole list is not read again, and what has is.
func TestKnownElementsAreNotReadAgain(t *testing.T) {
	const same, moved, gone = `<member><AutoScalingGroupName>a</AutoScalingGroupName><DesiredCapacity>1</DesiredCapacity><Tags><member><Key>k</Key><Value>v</Value></member></Tags></member>`,
		`<member><AutoScalingGroupName>b</AutoScalingGroupName><DesiredCapacity>1</DesiredCapacity></member>`,
		`<member><AutoScalingGroupName>c</AutoScalingGroupName></member><member/>`
	var k known[observed.Group]
	now := time.Now()
	read := func(groups string, whole bool) []*observed.Group {
		t.Helper()
		l, body := k.startList(now), []byte(groupsPageOf(groups))
		got, _, err := scanGroups(body, l)
		if err != nil {
			t.Fatal(err)
		}
		want, _, err := scanGroups(body, nil)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("groups (-want +got):\n%s", d)
		}
		if whole {
			l.complete()
		}
		return got
	}
	shared := func(a, b *observed.Group) bool {
		return a == b
	}
	first := read(same+moved+gone, true)
	if cut := read(gone, false); !shared(first[2], cut[0]) {
		t.Error("c was read again")
	}
	second := read(strings.Replace(moved, ">1<", ">2<", 1)+same, true) // after a list that was cut off
	if !shared(first[0], second[1]) {
		t.Error("a was read again, though nothing of it changed")
	}
	if second[0].DesiredCapacity != 2 {
		t.Errorf("b has %d machines, want the 2 that AWS says now", second[0].DesiredCapacity)
	}
	third := read(gone, true)
	if shared(first[2], third[0]) {
		t.Error("c is known, though the last whole list did not have it")
	}
	now = now.Add(renew)
	fourth := read(gone, true)
	if shared(third[0], fourth[0]) {
		t.Error("c is not read anew after a while")
	}
	if fifth := read(gone, true); !shared(fourth[0], fifth[0]) {
		t.Error("c is read anew each time")
	}
}

// What was read one by one while it was made is read again as a whole once nothing changes,
// and then no more.
func TestWhatWasReadInPiecesIsReadAgainOnce(t *testing.T) {
	var k known[observed.Group]
	now := time.Now()
	read := func(n int) []*observed.Group {
		t.Helper()
		var groups strings.Builder
		for i := range n {
			fmt.Fprintf(&groups, "<member><AutoScalingGroupName>g%d</AutoScalingGroupName></member>", i)
		}
		l := k.startList(now)
		got, _, err := scanGroups([]byte(groupsPageOf(groups.String())), l)
		if err != nil || len(got) != n {
			t.Fatal(len(got), err)
		}
		l.complete()
		return got
	}
	read(0)
	var before []*observed.Group
	for n := 1; n <= 8; n++ {
		after := read(n)
		for i := range before {
			if before[i] != after[i] {
				t.Errorf("g%d was read again while others come", i)
			}
		}
		before = after
	}
	if quiet := read(8); quiet[0] != before[0] {
		t.Error("g0 was read again, though nothing says yet that all have come")
	}
	anew := read(8)
	for i := range anew {
		if anew[i] == before[i] {
			t.Errorf("g%d is what was read in pieces", i)
		}
	}
	for range 3 {
		if again := read(8); again[7] != anew[7] {
			t.Error("g7 is read again each time")
		}
	}
	one := read(9)
	if read(9); read(9)[0] != one[0] {
		t.Error("all are read again for one that came")
	}
}

func BenchmarkScanKnownGroups(b *testing.B) {
	var page strings.Builder
	for i := range 100 {
		page.WriteString(strings.Replace(wholeGroup, "</AutoScalingGroupName>", string(rune('a'+i%26))+"</AutoScalingGroupName>", 1))
	}
	body := []byte(groupsPageOf(page.String()))
	var k known[observed.Group]
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		l := k.startList(time.Time{})
		if _, _, err := scanGroups(body, l); err != nil {
			b.Fatal(err)
		}
		l.complete()
	}
}
