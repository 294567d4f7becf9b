package git

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
)

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
		for i, e := range n.Entries {
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
