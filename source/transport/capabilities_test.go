package transport

import (
	"strings"
	"testing"
)

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
