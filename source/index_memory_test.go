package source_test

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1" //nolint:gosec // It is Git's checksum.
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"hash/adler32"
	"net/http/httptest"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/source"
)

// resident reads a size of this process from the system.
func resident(t *testing.T, what string) int {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("not Linux: the test reads the memory of a process from /proc")
	}
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, what+":"); ok {
			var kib int
			if _, err := fmt.Sscan(rest, &kib); err != nil {
				t.Fatal(err)
			}
			return kib << 10
		}
	}
	t.Fatalf("no %s", what)
	return 0
}

// peakOf is how much more memory the process takes at a time while do runs.
func peakOf(t *testing.T, do func()) int {
	t.Helper()
	debug.FreeOSMemory()
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0o600); err != nil {
		t.Skip("the peak cannot be reset here")
	}
	before := resident(t, "VmRSS")
	do()
	return resident(t, "VmHWM") - before
}

// spaces is a blob of n spaces as a pack holds it, and its name.
func spaces(n int) (part, name string) {
	var b bytes.Buffer
	z := zlib.NewWriter(&b)
	h := newBlobHash(n)
	line := bytes.Repeat([]byte(" "), 1<<20)
	for left := n; left > 0; left -= len(line) {
		line = line[:min(len(line), left)]
		_, _ = z.Write(line) // To memory.
		_, _ = h.Write(line)
	}
	_ = z.Close()
	return entry(blobKind, n, "") + b.String(), string(h.Sum(nil))
}

// Indexing a pack takes memory that grows neither with the pack's inflated size nor, by much, with its number of objects.
func TestTakingAPackInIsBoundedInMemory(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector takes several times the memory")
	}
	large, largeName := spaces(500 << 20)
	for name, c := range map[string]struct {
		pack func() (packed, commit string)
		most int // MiB
	}{
		"a blob of 500 MiB of spaces": {func() (string, string) {
			blob := "hello\n"
			tree := "100644 f\x00" + hashOf("blob", blob) + "100644 large\x00" + largeName
			commit := fmt.Sprintf("tree %x\nauthor A <a@x> 1 +0000\ncommitter A <a@x> 1 +0000\n\none\n", hashOf("tree", tree))
			return pack(4, object(commitKind, commit), object(treeKind, tree), object(blobKind, blob), large), hex.EncodeToString([]byte(hashOf("commit", commit)))
		}, 32},
		"400,000 objects": {func() (string, string) {
			good, commit := minimal()
			parts := good
			for i := range 400_000 {
				parts = append(parts, stored(blobKind, binary.BigEndian.AppendUint32(nil, uint32(i))))
			}
			return pack(uint32(len(parts)), parts...), commit
		}, 96},
	} {
		t.Run(name, func(t *testing.T) {
			packed, commit := c.pack()
			server := httptest.NewServer(serving(commit, packed))
			defer server.Close()
			g := open(t, source.Config{URL: server.URL + "/x.git", Dir: t.TempDir()}, source.Options{})
			peak := peakOf(t, func() {
				s := latest(t, g)
				if text, err := s.Tree.ReadFile("f"); err != nil || string(text) != "hello\n" || s.Revision != commit {
					t.Errorf("%q, %v", text, err)
				}
			})
			runtime.KeepAlive(packed)
			t.Logf("a pack of %d kB: %d MiB", len(packed)>>10, peak>>20)
			if peak>>20 > c.most {
				t.Errorf("took %d MiB, want %d at most", peak>>20, c.most)
			}
		})
	}
}

func newBlobHash(n int) hash.Hash {
	h := sha1.New() //nolint:gosec // It is Git's.
	fmt.Fprintf(h, "blob %d\x00", n)
	return h
}

// stored is an object in a zlib stream that compresses nothing: quick to make.
func stored(kind byte, content []byte) string {
	n := uint16(len(content))
	var b []byte
	b = append(b, 0x78, 0x01, 1)
	b = binary.LittleEndian.AppendUint16(b, n)
	b = binary.LittleEndian.AppendUint16(b, ^n)
	b = append(b, content...)
	b = binary.BigEndian.AppendUint32(b, adler32.Checksum(content))
	return entry(kind, len(content), "") + string(b)
}
