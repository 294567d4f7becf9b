package userdata

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/mail"
	"strings"

	"github.com/BurntSushi/toml"
)

// Detect returns the format of user data that weir did not write. It checks the start of the text, like
// cloud-init: mime, shell, powershell, ignition, or cloud-config, which stands for all other formats of
// cloud-init.
func Detect(text string) string {
	starts := func(prefixes ...string) bool {
		for _, p := range prefixes {
			if strings.HasPrefix(text, p) {
				return true
			}
		}
		return false
	}
	switch {
	case starts("MIME-Version:", "Content-Type: multipart/"):
		return "mime"
	case starts("#!"):
		return "shell"
	case starts("<powershell>", "<script>"):
		return "powershell"
	case IgnitionVersion(text) != "":
		return "ignition"
	}
	return "cloud-config"
}

// CheckMIME parses a MIME document like cloud-init and EKS do. Its error does not quote the document.
func CheckMIME(text string) error {
	m, err := mail.ReadMessage(strings.NewReader(text))
	if err != nil {
		return errors.New("its header cannot be read")
	}
	kind, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil || !strings.HasPrefix(kind, "multipart/") || params["boundary"] == "" {
		return errors.New("its header has no Content-Type of multipart/mixed with a boundary")
	}
	r := multipart.NewReader(m.Body, params["boundary"])
	for n := 1; ; n++ {
		p, err := r.NextRawPart()
		if errors.Is(err, io.EOF) && n > 1 {
			return nil
		}
		if err == nil {
			_, err = io.Copy(io.Discard, p)
		}
		if err != nil {
			return fmt.Errorf("part %d does not end in a line of the boundary", n)
		}
	}
}

// maxTOML bounds the text that CheckTOML parses. EC2 accepts no more, which another rule reports.
const maxTOML = 16 << 10

// CheckTOML parses a TOML document like Bottlerocket and EKS do. Its error does not quote the document.
func CheckTOML(text string) error {
	if len(text) > maxTOML {
		return nil
	}
	var settings map[string]any
	_, err := toml.Decode(text, &settings)
	var at toml.ParseError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &at):
		return fmt.Errorf("line %d cannot be read", at.Position.Line)
	}
	return errors.New("it cannot be read")
}

// IgnitionVersion returns the version in an Ignition document, and "" for any other text.
func IgnitionVersion(text string) string {
	var doc struct {
		Ignition struct {
			Version string `json:"version"`
		} `json:"ignition"`
	}
	if json.Unmarshal([]byte(text), &doc) != nil {
		return ""
	}
	return doc.Ignition.Version
}
