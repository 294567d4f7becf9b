package eks

import (
	"net/textproto"
	"slices"
	"testing"
)

// partsOf lists the parts of a document as "content type: content".
func partsOf(t *testing.T, document []byte) []string {
	t.Helper()
	var out []string
	if err := eachPart(document, func(h textproto.MIMEHeader, content []byte) error {
		out = append(out, h.Get("Content-Type")+": "+string(content))
		return nil
	}); err != nil {
		t.Fatalf("read what was written: %v\n%s", err, document)
	}
	return out
}

// FuzzJoinParts joins user data with a part of EKS's: what is accepted keeps its
// parts, the same input gives the same bytes.
func FuzzJoinParts(f *testing.F) {
	f.Add([]byte(""))
	f.Add([]byte("MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"b\"\n\n--b\nContent-Type: text/x-shellscript\n\necho\n--b--\n"))
	f.Add([]byte("Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\n--b--"))
	f.Add([]byte("#!/bin/sh\n"))
	f.Add([]byte("Content-Type: text/plain\n\nx"))
	f.Fuzz(func(t *testing.T, user []byte) {
		count := 0
		if eachPart(user, func(textproto.MIMEHeader, []byte) error { count++; return nil }) != nil {
			return
		}
		joined := joinParts(user, "application/node.eks.aws", "own")
		parts := partsOf(t, joined)
		if len(parts) != count+1 || parts[count] != "application/node.eks.aws: own" {
			t.Errorf("%d parts and one more became %q", count, parts)
		}
		if !slices.Equal(joined, joinParts(user, "application/node.eks.aws", "own")) {
			t.Error("two runs differ")
		}
	})
}
