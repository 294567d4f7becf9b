package redact

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weir-gitops/weir/render/secret"
)

func TestRegistry(t *testing.T) {
	var r Registry
	r.Set("a", secret.New("first-value"))
	r.Set("b", secret.New("other-value"))
	r.Set("a", secret.New("second-value"))
	r.Set("a", secret.New("second-value"))
	if got := r.Redact("first-value second-value other-value third-value"); got != "(redacted) (redacted) (redacted) third-value" {
		t.Error(got)
	}
	r.Set("a", secret.New("third-value"))
	if got := r.Redact("first-value second-value third-value"); got != "first-value (redacted) (redacted)" {
		t.Error(got)
	}
	long := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("user data"), 20))
	if got := r.Redact("bad parameter " + long + "."); got != "bad parameter (redacted)." {
		t.Error(got)
	}
	hash := strings.Repeat("0a", 32)
	if got := r.Redact(hash); got != hash {
		t.Error(got)
	}
	if got := (*Registry)(nil).Redact("third-value"); got != "third-value" {
		t.Error(got)
	}
}

func TestWriter(t *testing.T) {
	var r Registry
	var b bytes.Buffer
	w := r.Writer(&b)
	r.Set("a", secret.New("the-value"))
	for _, text := range []string{"a the-value", " b"} {
		if n, err := w.Write([]byte(text)); n != len(text) || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	}
	if b.String() != "a (redacted) b" || w.(interface{ Unwrap() io.Writer }).Unwrap() == nil {
		t.Error(b.String())
	}
}

func TestHandler(t *testing.T) {
	var r Registry
	r.Set("a", secret.New("the-value"))
	var b bytes.Buffer
	log := slog.New(r.Handler(slog.NewJSONHandler(&b, nil))).With("with", "the-value").WithGroup("g")
	log.Info("say the-value", "text", "the-value", "error", fmt.Errorf("x: %w", errors.New("the-value")), "n", 1,
		slog.Group("in", "x", "the-value"), "list", []string{"the-value"}, "plain", []string{"a"})
	if got := b.String(); strings.Contains(got, "the-value") || strings.Count(got, "(redacted)") != 6 || !strings.Contains(got, `"n":1`) || !strings.Contains(got, `"plain":["a"]`) {
		t.Error(got)
	}
}

// TestEncodedIsFoundQuickly holds the quick look against the pattern.
func TestEncodedIsFoundQuickly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`([a-c+/]{0,100}[ =.]?){0,5}`).Draw(t, "text")
		if got, want := mayHoldEncoded(text), encoded.MatchString(text); got != want {
			t.Fatalf("%q: %t, want %t", text, got, want)
		}
	})
	for n, want := range map[int]bool{87: false, 88: true, 89: true} {
		if got := mayHoldEncoded("x " + strings.Repeat("A", n) + " y"); got != want {
			t.Errorf("%d characters: %t", n, got)
		}
	}
}

// Pull requests come and go for years: their secrets are hidden for as long as they
// are shown, and the registry stays small.
func TestPassingOwnersAreBounded(t *testing.T) {
	const most = 10
	r := Registry{bound: most}
	r.Set("target prod", secret.New("of-the-target-itself"))
	value := func(i int) string { return fmt.Sprintf("of-pull-request-%d", i) }
	for i := range 3 * most {
		r.SetPassing(fmt.Sprint("pull request s ", i), secret.New(value(i)))
		r.SetPassing("pull request s 0", secret.New(value(0))) // which is planned again and again
		r.SetPassing("pull request without", secret.New())
	}
	if n := len(r.sets); n != most+1 || len(r.passing) != most {
		t.Errorf("%d owners are remembered", n)
	}
	last := 3*most - 1
	shown := "of-the-target-itself " + value(0) + " " + value(last) + " " + value(last-most+2)
	if got := r.Redact(shown); strings.Contains(got, "of-") {
		t.Errorf("shown: %s", got)
	}
	if got := r.Redact(value(1)); got != value(1) {
		t.Errorf("hidden for ever: %s", got)
	}
}

// Redact forgets the secrets of targets that have gone, and a change costs no more than
// what it changes, however many others there are.
func TestOwnersThatHaveGoneAreForgotten(t *testing.T) {
	var r Registry
	r.Set("credentials", secret.New("of-the-process"))
	fleet := func(from, to int) {
		owners := map[string]bool{}
		for i := from; i < to; i++ {
			owner := fmt.Sprint("target ", i)
			owners[owner] = true
			r.Set(owner, secret.New(fmt.Sprintf("%03d-value-of-target", i), fmt.Sprintf("%03d-other-of-target", i), "which-all-have"))
		}
		r.Only("target ", owners)
	}
	fleet(0, 100)
	if n := r.all.Len(); n != 202 || len(r.sets) != 101 {
		t.Fatalf("%d values of %d owners", n, len(r.sets))
	}
	fleet(0, 10)
	if got := r.Redact("050-value-of-target"); got != "(redacted)" {
		t.Errorf("shown while what was written down with it may be: %s", got)
	}
	fleet(0, 10)
	if n := r.all.Len(); n != 22 || len(r.sets) != 11 {
		t.Errorf("%d values of %d owners are left", n, len(r.sets))
	}
	if got := r.Redact("050-value-of-target 007-value-of-target which-all-have of-the-process"); got != "050-value-of-target (redacted) (redacted) (redacted)" {
		t.Error(got)
	}
}

// The same fleet takes the same memory, however often others came and went.
func TestMemoryReturns(t *testing.T) {
	var r Registry
	cycle := func(n int) uint64 {
		owners := map[string]bool{}
		for i := range n {
			owner := fmt.Sprint("target ", i)
			owners[owner] = true
			var values []string
			for j := range 40 {
				values = append(values, fmt.Sprintf("secret-%d-of-target-%d-in-a-fleet-of-%d", j, i, n))
			}
			r.Set(owner, secret.New(values...))
		}
		r.Only("target ", owners)
		r.Only("target ", owners)
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	cycle(10)
	before := cycle(10)
	most := uint64(0)
	for range 5 {
		most = max(most, cycle(200))
		cycle(10)
	}
	after := cycle(10)
	if most < before+2<<20 {
		t.Fatalf("200 targets take no more than 10: %d and %d bytes", most, before)
	}
	if after > before+256<<10 {
		t.Errorf("%d bytes before, %d afterwards, %d between", before, after, most)
	}
}
