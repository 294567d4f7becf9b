package fault

import (
	"strings"
	"testing"
)

func TestPlain(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"a\x1b[31m\nb\t c": "a [31m b c", "\xff": "?", strings.Repeat("é", 400): strings.Repeat("é", 300) + "…",
	} {
		if got := Plain(in); got != want {
			t.Errorf("plain(%q) = %q, want %q", in, got, want)
		}
	}
}
