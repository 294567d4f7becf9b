package stringpool_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/weir-gitops/weir/reconciler/awscloud/stringpool"
)

func sameMemory(a, b string) bool { return unsafe.StringData(a) == unsafe.StringData(b) }

// Equal short texts share their memory, whichever way they came, and are what they were.
func TestEqualShortTextsShareTheirMemory(t *testing.T) {
	whole := strings.Repeat("subnet-1,", 1000)
	a, b, c := stringpool.String(whole[:8]), stringpool.Bytes([]byte("subnet-1")), stringpool.String(strings.Clone("subnet-1"))
	if a != "subnet-1" || !sameMemory(a, b) || !sameMemory(a, c) {
		t.Errorf("%q, %q and %q are apart", a, b, c)
	}
	if sameMemory(a, whole) {
		t.Error("a short text keeps the long one that it was part of")
	}
	long := strings.Repeat("x", stringpool.Longest+1)
	if got := stringpool.String(long); !sameMemory(got, long) {
		t.Error("a long text was copied")
	}
	if a, b := stringpool.Bytes([]byte(long)), stringpool.Bytes([]byte(long)); a != long || sameMemory(a, b) {
		t.Error("a long text is kept")
	}
	if stringpool.String("") != "" || stringpool.Bytes(nil) != "" {
		t.Error("nothing became something")
	}
}

// Any text comes out as it went in, whatever others ask for meanwhile.
func TestTextsStayApart(t *testing.T) {
	var all sync.WaitGroup
	for w := range 4 {
		all.Go(func() {
			for i := range 20_000 {
				want := fmt.Sprint("i-", (i*7+w)%9000)
				if got := stringpool.String(want); got != want {
					t.Errorf("%q, want %q", got, want)
				}
				if got := stringpool.Bytes([]byte(want)); got != want {
					t.Errorf("%q, want %q", got, want)
				}
			}
		})
	}
	all.Wait()
}
