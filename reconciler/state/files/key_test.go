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

func TestKeysOfAFile(t *testing.T) {
	const one, two = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=", "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDI="
	file := filepath.Join(t.TempDir(), "keys")
	for text, want := range map[string]string{
		one:                         "1",
		one + "\n":                  "1",
		two + "\r\n" + one + "\n\n": "21",
		"":                          "line 1 of " + file + " does not hold 32 bytes",
		one + "\nshort\n":           "line 2 of " + file + " does not hold 32 bytes",
		one + "\n\n" + two:          "line 2 of ",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		keys, err := ReadKeys(file)
		got := ""
		for _, key := range keys {
			got += string(key[KeyBytes-1:])
		}
		if err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, want) || len(want) < 3 && got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
