package userdata

import (
	"encoding/json"
	"strings"
)

// Detect tells the format of user data that somebody else wrote by how it
// begins, as cloud-init does: mime, shell, powershell, ignition, or
// cloud-config, which stands for all that cloud-init takes beside.
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

// IgnitionVersion is the version that an Ignition document names, empty for any
// other text.
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
