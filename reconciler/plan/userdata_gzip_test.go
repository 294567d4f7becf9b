package plan

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/reconciler/content"
	"github.com/weir-gitops/weir/render/intent"
)

// TestAnotherCompressorRollsNothing compares template data whose user data is the
// same text, compressed in different ways.
func TestAnotherCompressorRollsNothing(t *testing.T) {
	text := strings.Repeat("#cloud-config\n", 2000)
	packed := func(level int) intent.TemplateData {
		var b bytes.Buffer
		w, err := gzip.NewWriterLevel(&b, level)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return intent.TemplateData{InstanceType: "m5.large", UserData: base64.StdEncoding.EncodeToString(b.Bytes())}
	}
	small, fast := packed(gzip.BestCompression), packed(gzip.NoCompression)
	if small.UserData == fast.UserData {
		t.Fatal("the two compressors do the same")
	}
	if a, b := content.BodyHash(small), content.BodyHash(fast); a != b {
		t.Errorf("hashes %s and %s", a, b)
	}
	if a, b := content.SourceHash(small, intent.Lookup{}), content.SourceHash(fast, intent.Lookup{}); a != b {
		t.Errorf("source hashes %s and %s", a, b)
	}
	other := small
	other.UserData = base64.StdEncoding.EncodeToString([]byte(text + "x"))
	if content.BodyHash(small) == content.BodyHash(other) {
		t.Error("another text has the same hash")
	}
	if !strings.HasPrefix(small.UserData, content.GzipBase64) || content.Decoded(small.UserData) != text {
		t.Error("the compressed text is not seen as such")
	}
}
