package intent_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/render/intent"
	"pgregory.net/rapid"
)

// noise is text of n characters of which a compressor leaves more than half.
func noise(n int) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		sum := sha256.Sum256([]byte(strconv.Itoa(i)))
		b.WriteString(hex.EncodeToString(sum[:]))
	}
	return b.String()[:n]
}

func TestEncode(t *testing.T) {
	const limit = intent.UserDataLimit
	tests := map[string]struct {
		data       intent.UserData
		text       string
		compressed bool
		tooLarge   string
	}{
		"fits":                   {intent.UserData{Format: "cloud-config"}, strings.Repeat("x", limit), false, ""},
		"cloud-config":           {intent.UserData{Format: "cloud-config"}, strings.Repeat("x", limit+1), true, ""},
		"MIME":                   {intent.UserData{Format: "mime"}, strings.Repeat("x", limit+1), true, ""},
		"script":                 {intent.UserData{Format: "shell"}, strings.Repeat("x", limit+1), true, ""},
		"MIME that EKS reads":    {intent.UserData{Format: "mime", Merged: true}, strings.Repeat("x", limit+1), false, "the user data has 16385 bytes; EC2 allows 16384"},
		"Ignition":               {intent.UserData{Format: "ignition"}, strings.Repeat("x", limit+1), false, "the user data has 16385 bytes; EC2 allows 16384"},
		"TOML":                   {intent.UserData{Format: "toml"}, strings.Repeat("x", limit+1), false, "the user data has 16385 bytes; EC2 allows 16384"},
		"PowerShell":             {intent.UserData{Format: "powershell"}, strings.Repeat("x", limit+1), false, "the user data has 16385 bytes; EC2 allows 16384"},
		"too much for any means": {intent.UserData{Format: "cloud-config"}, noise(4 * limit), false, " compressed; EC2 allows 16384"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			raw, tooLarge := tt.data.Encode(tt.text)
			if !strings.HasSuffix(tooLarge, tt.tooLarge) || (tooLarge == "") != (tt.tooLarge == "") {
				t.Fatalf("too large: %q, want %q", tooLarge, tt.tooLarge)
			}
			if tooLarge != "" {
				if raw != nil {
					t.Errorf("%d bytes although it is too large", len(raw))
				}
				return
			}
			if got := bytes.HasPrefix(raw, []byte("\x1f\x8b")); got != tt.compressed || len(raw) > limit {
				t.Errorf("%d bytes, compressed %v, want %v", len(raw), got, tt.compressed)
			}
			if intent.DecodeUserData(raw) != tt.text {
				t.Error("it does not come back")
			}
		})
	}
}

func TestEncodeIsDeterministicAndComesBack(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		text := strings.Repeat(rapid.StringN(1, 50, -1).Draw(rt, "text"), rapid.IntRange(1, 2000).Draw(rt, "times"))
		u := intent.UserData{Format: "cloud-config"}
		first, tooLarge := u.Encode(text)
		again, _ := u.Encode(text)
		if !bytes.Equal(first, again) {
			rt.Fatal("two encodings differ")
		}
		if tooLarge == "" && intent.DecodeUserData(first) != text {
			rt.Fatal("it does not come back")
		}
	})
}

// TestDecodeIsBounded unpacks what is no gzip, is cut short, or is far too much.
func TestDecodeIsBounded(t *testing.T) {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	for range 64 {
		_, _ = w.Write(make([]byte, 1<<20))
	}
	_ = w.Close()
	for name, raw := range map[string]string{"bomb": b.String(), "cut": b.String()[:100], "only the magic": "\x1f\x8b", "text": "#!", "nothing": ""} {
		if got := intent.DecodeUserData([]byte(raw)); got != raw {
			t.Errorf("%s: came back changed, %d bytes", name, len(got))
		}
	}
}
