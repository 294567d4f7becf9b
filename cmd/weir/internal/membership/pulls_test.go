package membership

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-gitops/weir/reconciler/coord"
	"github.com/weir-gitops/weir/reconciler/coord/coordtest"
)

// noise is text of a size.
func noise(size int) []byte {
	r, out := rand.New(rand.NewPCG(1, uint64(size))), make([]byte, size) //nolint:gosec // a test
	for i := range out {
		out[i] = byte('a' + r.IntN(26))
	}
	return out
}

// The records of pull requests are bounded: the size of a part, of a plan and of a source, and the number of ended ones. An unchanged pull request is not
// written again.
func TestRecordsOfPullRequestsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := coordtest.NewMemory()
		a, _ := joined(t, memory, "a", "source/k")
		b, _ := joined(t, memory, "b", "")
		time.Sleep(30 * time.Second)
		l := a.Leases.Get("source/k")
		if l == nil {
			t.Fatal("it owns nothing")
		}
		show := func(number int64, ended bool, text []byte) {
			whole := func() ([]byte, []byte, error) { return text, text, nil }
			short := func() ([]byte, []byte, error) { return []byte("short"), []byte("short"), nil }
			a.Pulls.Publish(l, Pull{Source: "a/b", Number: number, Ended: ended, Data: whole, Short: short})
			time.Sleep(3 * time.Second)
		}
		known := map[int64][]byte{}
		nobody := func(string) bool { return false }
		read := func() (news int) {
			b.Pulls.Read(nobody, func(_ string, number int64, data []byte) { known[number] = data; news++ })
			return news
		}
		bytesOf := func() (n int) {
			for _, r := range b.Mirror.Snapshot().List("pull/") {
				if n += len(r.Value); len(r.Value) >= coord.MaxValue {
					t.Errorf("%s has %d bytes", r.Key, len(r.Value))
				}
			}
			return n
		}
		large := noise(700 << 10)
		show(1, false, large)
		if read() != 1 || !bytes.Equal(known[1], large) {
			t.Fatalf("of the first one %d bytes are known", len(known[1]))
		}
		show(1, false, large)
		if read() != 0 {
			t.Error("what stayed the same was written again")
		}
		show(1, false, []byte("small"))
		if read(); string(known[1]) != "small" || bytesOf() > 100 {
			t.Errorf("it has become %.20s, and there are %d bytes", known[1], bytesOf())
		}
		show(2, false, noise(800<<10))
		if read(); string(known[2]) != "short" {
			t.Errorf("a plan of 800 KB was published: %d bytes", len(known[2]))
		}
		for n := int64(100); n < 140; n++ {
			show(n, true, large)
		}
		for n := int64(200); n < 220; n++ {
			show(n, false, large)
		}
		if n := bytesOf(); n > keptPullBytes || n < keptPullBytes/2 {
			t.Errorf("all have %d bytes", n)
		}
		read()
		if string(known[219]) != "short" {
			t.Errorf("there was room for the last one")
		}
		for n := int64(300); n < 340; n++ {
			show(n, true, fmt.Append(nil, n))
		}
		open, ended := 0, 0
		for _, k := range pullsOf(b.Mirror.Snapshot(), "") {
			if k.source != "a/b" {
				t.Errorf("there is one of %q", k.source)
			}
			if k.head.ended {
				ended++
			} else {
				open++
			}
		}
		if open != 22 || ended != keptEnded {
			t.Errorf("%d are open, %d have ended", open, ended)
		}

		// A member that owns the source skips its records, and reads all of them later.
		c, _ := joined(t, memory, "c", "")
		time.Sleep(5 * time.Second)
		taken := 0
		take := func(string, int64, []byte) { taken++ }
		if c.Pulls.Read(func(string) bool { return true }, take); taken != 0 {
			t.Errorf("%d were taken in by who speaks", taken)
		}
		if c.Pulls.Read(nobody, take); taken != open+ended {
			t.Errorf("%d of %d were taken in", taken, open+ended)
		}
	})
}
