package files

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAKeyIsMadeOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state", "some.key")
	first, err := OpenKey(file, "some key", "nothing is lost")
	if err != nil || len(first) != KeyBytes {
		t.Fatalf("%d bytes, %v", len(first), err)
	}
	again, err := OpenKey(file, "some key", "nothing is lost")
	if err != nil || !bytes.Equal(first, again) {
		t.Errorf("another key: %v", err)
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	for _, text := range []string{"", "short", "not base64 at all !"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenKey(file, "some key", "nothing is lost"); err == nil || !strings.Contains(err.Error(), "remove it, and nothing is lost") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
