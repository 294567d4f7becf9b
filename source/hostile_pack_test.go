package source_test

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"crypto/sha1" //nolint:gosec // It is Git's checksum.
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/source/fault"
)

// pack makes a pack of parts that says that it has so many objects.
func pack(count uint32, parts ...string) string {
	text := "PACK\x00\x00\x00\x02" + string(binary.BigEndian.AppendUint32(nil, count)) + strings.Join(parts, "")
	sum := sha1.Sum([]byte(text)) //nolint:gosec // It is Git's checksum.
	return text + string(sum[:])
}

// object is one of a type, whole.
func object(kind byte, content string) string { return lying(kind, len(content), "", content) }

// lying is an object whose header says another size, with a base's name in front.
func lying(kind byte, size int, base, content string) string {
	return entry(kind, size, base) + deflated(content)
}

// entry is the header of an object.
func entry(kind byte, size int, base string) string {
	head := []byte{kind<<4 | byte(size&15)}
	for size >>= 4; size > 0; size >>= 7 {
		head[len(head)-1] |= 0x80
		head = append(head, byte(size&0x7f))
	}
	return string(head) + base
}

var deflaters = sync.Pool{New: func() any { return zlib.NewWriter(nil) }}

func deflated(content string) string {
	var b bytes.Buffer
	z := deflaters.Get().(*zlib.Writer)
	defer deflaters.Put(z)
	z.Reset(&b)
	_, _ = io.WriteString(z, content) // To memory.
	_ = z.Close()
	return b.String()
}

// delta makes instructions that copy and insert; see gitformat-pack(5).
func delta(from, to int, instructions ...string) string {
	var head []byte
	for _, n := range []int{from, to} {
		head = binary.AppendUvarint(head, uint64(n))
	}
	return string(head) + strings.Join(instructions, "")
}

func insert(text string) string { return string(rune(len(text))) + text }

// copied is an instruction to copy size bytes from the base's start.
func copied(size int) string {
	return "\xf0" + string([]byte{byte(size), byte(size >> 8), byte(size >> 16)})
}

// back writes how far back a delta's base begins.
func back(offset int) string {
	out := []byte{byte(offset & 0x7f)}
	for offset >>= 7; offset > 0; offset >>= 7 {
		offset--
		out = append([]byte{byte(offset&0x7f) | 0x80}, out...)
	}
	return string(out)
}

func hashOf(kind, content string) string {
	sum := sha1.Sum(fmt.Appendf(nil, "%s %d\x00%s", kind, len(content), content)) //nolint:gosec // It is Git's.
	return string(sum[:])
}

const (
	commitKind, treeKind, blobKind, ofsDelta, refDelta = 1, 2, 3, 6, 7
)

// minimal are the objects of a commit with one file, and the commit's name.
func minimal() (parts []string, name string) {
	blob := "hello\n"
	tree := "100644 f\x00" + hashOf("blob", blob)
	commit := fmt.Sprintf("tree %x\nauthor A <a@x> 1 +0000\ncommitter A <a@x> 1 +0000\n\none\n", hashOf("tree", tree))
	return []string{object(commitKind, commit), object(treeKind, tree), object(blobKind, blob)}, hex.EncodeToString([]byte(hashOf("commit", commit)))
}

// serving gives the refs of a commit and the pack.
func serving(commit, packed string) hostile {
	list := strings.ReplaceAll(refs(usualCaps), someCommit, commit)
	return hostile{say(list), func(w *bufio.Writer, _ *http.Request) {
		_, _ = w.WriteString(pkt("NAK\n"))
		for rest := packed; rest != ""; {
			n := min(len(rest), 60_000)
			_, _ = w.WriteString(pkt("\x01" + rest[:n]))
			rest = rest[n:]
		}
		_, _ = w.WriteString("0000")
	}, false}
}

func TestHostilePacks(t *testing.T) {
	t.Parallel()
	good, commit := minimal()
	with := func(more ...string) string {
		return pack(uint32(len(good)+len(more)), append(slices.Clone(good), more...)...)
	}
	base := strings.Repeat("0123456789abcdef", 64)
	// chain makes deltas upon deltas, of which each is a byte longer.
	chain := func(n int) string {
		parts, at := []string{object(blobKind, base)}, 0
		for i := range n {
			d := delta(len(base)+i, len(base)+i+1, copied(len(base)+i), insert("x"))
			last := parts[len(parts)-1]
			at += len(last)
			parts = append(parts, lying(ofsDelta, len(d), back(len(last)), d))
		}
		return with(parts...)
	}
	// doubling makes each delta twice as long.
	doubling := func(n int) string {
		parts, size := []string{object(blobKind, base)}, len(base)
		for range n {
			var d string
			if half := size; half < 1<<24 {
				d = delta(size, 2*size, copied(half), copied(half))
			} else {
				d = delta(size, 2*size, strings.Repeat(copied(1<<24-1), 2*size>>24))
			}
			last := parts[len(parts)-1]
			size *= 2
			parts = append(parts, lying(ofsDelta, len(d), back(len(last)), d))
		}
		return with(parts...)
	}
	few := delta(len(base), len(base), copied(len(base)))
	for name, tt := range map[string]struct {
		pack   string
		reason fault.Reason // empty: it is good
		text   string
	}{
		"as it should be":          {with(), "", ""},
		"an object twice":          {with(good[0]), "", ""},
		"a delta":                  {chain(3), "", ""},
		"fewer objects":            {pack(1000, good...), fault.Unreachable, "cut short or damaged"},
		"more objects":             {pack(2, good...), fault.Unreachable, "cut short or damaged"},
		"four thousand million":    {pack(0xffffffff, good...), fault.Unsupported, "4294967295 objects, more than the limit"},
		"no objects":               {pack(0), fault.MissingRef, ""},
		"another version":          {strings.Replace(with(), "\x00\x00\x00\x02", "\x00\x00\x00\x63", 1), fault.Unreachable, "cut short or damaged"},
		"no pack":                  {"<html>hello</html>", fault.Unreachable, "cut short or damaged"},
		"a wrong checksum":         {with()[:len(with())-1] + "x", fault.Unreachable, "checksum"},
		"cut in the checksum":      {with()[:len(with())-7], fault.Unreachable, "cut short or damaged"},
		"a longer object":          {with(lying(blobKind, 3, "", strings.Repeat("x", 1<<20))), fault.Unreachable, "exceeds declared size"},
		"a shorter object":         {with(lying(blobKind, 300, "", "x")), fault.Unreachable, "cut short or damaged"},
		"a huge object":            {with(lying(blobKind, 1<<40, "", "x")), fault.Unsupported, "1099511627776 bytes"},
		"a size without end":       {with("\xbf" + strings.Repeat("\xff", 20) + "x"), fault.Unreachable, "cut short or damaged"},
		"a type that is none":      {with(object(5, "x")), fault.Unreachable, "cut short or damaged"},
		"no zlib":                  {with("\x33abcdef"), fault.Unreachable, "cut short or damaged"},
		"a delta of itself":        {with(object(blobKind, base), lying(ofsDelta, len(few), back(0), few)), fault.Unreachable, "cut short or damaged"},
		"a delta of the header":    {with(object(blobKind, base), lying(ofsDelta, len(few), back(len(object(blobKind, base))-1), few)), fault.Unreachable, "cut short or damaged"},
		"a delta from before":      {with(lying(ofsDelta, len(few), back(1<<30), few)), fault.Unreachable, "cut short or damaged"},
		"a thin pack":              {with(lying(refDelta, len(few), hashOf("blob", "else"), few)), fault.Unreachable, "reference delta not found"},
		"deltas of one another":    {with(lying(refDelta, len(few), strings.Repeat("a", 20), few), lying(refDelta, len(few), strings.Repeat("b", 20), few)), fault.Unreachable, "reference delta not found"},
		"a delta longer than said": {with(object(blobKind, base), lying(ofsDelta, len(few), back(len(object(blobKind, base))), delta(len(base), 10, copied(len(base))))), fault.Unreachable, "cut short or damaged"},
		"a delta with a huge size": {with(object(blobKind, base), lying(ofsDelta, len(delta(len(base), 1<<40)), back(len(object(blobKind, base))), delta(len(base), 1<<40))), fault.Unsupported, "1099511627776 bytes"},
		"a chain that is too long": {chain(10_000), fault.Unreachable, "chain depth"},
		"doubling":                 {doubling(24), fault.Unsupported, "more than the limit"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(serving(commit, tt.pack))
			defer server.Close()
			cfg := source.Config{URL: server.URL + "/x.git", Dir: t.TempDir()}
			g := open(t, cfg, source.Options{})
			if tt.reason == "" {
				if s := wantRevision(t, g, commit); files(t, s.Tree)["f"] != "hello\n" {
					t.Error("the file is another one")
				}
				return
			}
			if ue := wantUnavailable(t, g, tt.reason); !strings.Contains(ue.Error(), tt.text) {
				t.Errorf("%v, want %q", ue, tt.text)
			}
			left, err := filepath.Glob(filepath.Join(cfg.Dir, "*", "objects", "pack", "*"))
			if err != nil || len(left) > 0 && tt.reason != fault.MissingRef {
				t.Errorf("what was refused stays on disk: %v %v", left, err)
			}
		})
	}
}

// TestPackThatUnfoldsTooFar interleaves chains of deltas, so that each has to be
// followed from its beginning again and again.
func TestPackThatUnfoldsTooFar(t *testing.T) {
	t.Parallel()
	const chains, depth, size = 120, 400, 1 << 20
	good, commit := minimal()
	parts := slices.Clone(good)
	at := 0
	last := make([]int, chains)
	add := func(part string) {
		parts = append(parts, part)
		at += len(part)
	}
	for i := range chains {
		last[i] = at
		add(object(blobKind, fmt.Sprintf("%08d", i)+strings.Repeat("x", size-8)))
	}
	for d := range depth {
		for i := range chains {
			text := delta(size, size, insert(fmt.Sprintf("%08d", d)), copied(size-8))
			content := deflated(text)
			here := at
			add(entry(ofsDelta, len(text), back(here-last[i])) + content)
			last[i] = here
		}
	}
	packed := pack(uint32(len(parts)), parts...)
	server := httptest.NewServer(serving(commit, packed))
	defer server.Close()
	g := open(t, source.Config{URL: server.URL + "/x.git"}, source.Options{})
	source.SetUnpackLimit(g, time.Second)
	start := time.Now()
	if ue := wantUnavailable(t, g, fault.Unsupported); !strings.Contains(ue.Error(), "unfolds too far") {
		t.Errorf("%v", ue)
	}
	t.Logf("%d bytes: %s", len(packed), time.Since(start))
}
