package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/google/go-cmp/cmp"
	"github.com/weir-gitops/weir/source/snapshot"
)

func TestPollerTiming(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		start := time.Now()
		var looks []time.Duration
		var told []string
		outcomes := []any{"a", "a", "b", Unreachable, Unreachable, Corrupt, Corrupt, "b"}
		draws := []float64{0, 0.5, 1, 0.5, 0.5, 0.5, 0.5}
		wake := make(chan struct{}, 1)
		p := poller{
			interval: 10 * time.Second, wake: wake,
			rand: func() float64 { return draws[min(len(looks)-1, len(draws)-1)] },
			look: func(context.Context) (snapshot.Snapshot, error) {
				looks = append(looks, time.Since(start).Round(time.Millisecond))
				if len(looks) == len(outcomes) {
					defer cancel()
				}
				switch o := outcomes[len(looks)-1].(type) {
				case Reason:
					return snapshot.Snapshot{}, &UnavailableError{Source: "s", Reason: o, Err: errors.New("x")}
				default:
					return snapshot.Snapshot{Revision: o.(string)}, nil
				}
			},
			report: func(s snapshot.Snapshot, err error) {
				told = append(told, fmt.Sprint(s.Revision, outcomeOf(s, err).reason))
			},
		}
		p.run(ctx)
		// 9 s, 10 s, 11 s, 10 s, 10 s, then a second until the mirror is made
		// again, then the interval.
		want := []time.Duration{0, 9, 19, 30, 40, 50, 51, 61}
		for i := range want {
			want[i] *= time.Second
		}
		if diff := cmp.Diff(want, looks); diff != "" {
			t.Errorf("looks (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"a", "b", "unreachable", "corrupt"}, told); diff != "" {
			t.Errorf("told (-want +got):\n%s", diff)
		}
	})
}

func TestPollerSkipsToTheNewest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		revision := 0
		wake := make(chan struct{}, 1)
		var told []string
		p := poller{
			interval: time.Hour, rand: rand.Float64, wake: wake,
			look: func(context.Context) (snapshot.Snapshot, error) {
				return snapshot.Snapshot{Revision: fmt.Sprint(revision)}, nil
			},
			report: func(s snapshot.Snapshot, _ error) {
				told = append(told, s.Revision)
				for range 5 { // Five commits come while the first is worked on.
					revision++
					select {
					case wake <- struct{}{}:
					default:
					}
				}
				if len(told) == 3 {
					cancel()
				}
			},
		}
		p.run(ctx)
		if diff := cmp.Diff([]string{"0", "5", "10"}, told); diff != "" {
			t.Errorf("told (-want +got):\n%s", diff)
		}
	})
}

func entryBytes(mode, name string) []byte {
	return append([]byte(mode+" "+name+"\x00"), bytes.Repeat([]byte{7}, 20)...)
}

func TestDecodeTreeRefuses(t *testing.T) {
	t.Parallel()
	good := entryBytes("100644", "a")
	for name, data := range map[string][]byte{
		"cut in hash": good[:len(good)-1], "cut in name": []byte("100644 a"), "no name": entryBytes("100644", ""), "slash": entryBytes("100644", "a/b"),
		"dot": entryBytes("40000", "."), "dots": entryBytes("40000", ".."), "mode": entryBytes("100600", "a"), "no mode": []byte("a\x00" + strings.Repeat("x", 20)),
		"twice": append(append([]byte(nil), good...), good...), "file and directory": append(entryBytes("40000", "a"), good...),
	} {
		if n, err := decodeTree(data); err == nil {
			t.Errorf("%s: decoded as %+v", name, n)
		}
	}
}

func FuzzDecodeTree(f *testing.F) {
	f.Add(entryBytes("100644", "a"))
	f.Add(append(entryBytes("40000", "a"), entryBytes("120000", "a.b")...))
	f.Add([]byte("160000 \xff\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		n, err := decodeTree(data)
		if err != nil {
			return
		}
		size := 0
		for i, e := range n.entries {
			if n.find(e.Name) != i {
				t.Errorf("%q is not found at %d", e.Name, i)
			}
			size += len(e.Name) + 20
		}
		if size > len(data) {
			t.Errorf("%d bytes of entries from %d bytes", size, len(data))
		}
	})
}

func FuzzCapabilities(f *testing.F) {
	f.Add([]byte("001e# service=git-upload-pack\n0000009c aaaa HEAD\x00multi_ack symref=HEAD:refs/heads/main object-format=sha1\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, c := range parseCapabilities(data) {
			if c == "" || strings.ContainsAny(c, " \n") {
				t.Errorf("capability %q", c)
			}
		}
	})
}

func TestLRUStaysWithinItsLimit(t *testing.T) {
	t.Parallel()
	c := newLRU[int](100)
	key := func(i int) plumbing.Hash { return plumbing.ComputeHash(plumbing.BlobObject, []byte(fmt.Sprint(i))) }
	c.put(key(0), 0, 40)
	for i := 1; i < 50; i++ {
		c.put(key(i), i, 30)
		if _, ok := c.get(key(0)); !ok {
			t.Fatalf("the value in use left at %d", i)
		}
		if c.used > 100 || len(c.items) != c.order.Len() {
			t.Fatalf("used %d with %d items in a list of %d", c.used, len(c.items), c.order.Len())
		}
	}
	if v, ok := c.get(key(49)); !ok || v != 49 {
		t.Errorf("newest: %d, %v", v, ok)
	}
	if _, ok := c.get(key(1)); ok {
		t.Error("the oldest unused value is still there")
	}
	c.put(key(100), 100, 101)
	if _, ok := c.get(key(100)); ok || len(c.items) == 0 {
		t.Error("a value above the limit was kept, or drove the others out")
	}
}

func TestPlain(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"a\x1b[31m\nb\t c": "a [31m b c", "\xff": "?", strings.Repeat("é", 400): strings.Repeat("é", 300) + "…",
	} {
		if got := plain(in); got != want {
			t.Errorf("plain(%q) = %q, want %q", in, got, want)
		}
	}
}
