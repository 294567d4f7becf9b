package config

import (
	_ "embed"
	"strings"
	"sync"
)

// descriptionsText contains the comments of the types and fields of a Config, one per line.
// TestDescriptions writes it.
//
//go:embed descriptions.txt
var descriptionsText string

var descriptions = sync.OnceValue(func() map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(descriptionsText) {
		id, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		out[id] = text
	}
	return out
})
