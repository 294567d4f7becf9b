package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// The bill of materials is CycloneDX 1.5. It says what the linker put into the
// binary, read from the binary itself, and so nothing that only tests need.
// https://cyclonedx.org/docs/1.5/json/

type bom struct {
	Format       string      `json:"bomFormat"`
	SpecVersion  string      `json:"specVersion"`
	SerialNumber string      `json:"serialNumber"`
	Version      int         `json:"version"`
	Metadata     bomMetadata `json:"metadata"`
	Components   []component `json:"components"`
	Dependencies []dependsOn `json:"dependencies"`
}

type bomMetadata struct {
	Timestamp string    `json:"timestamp"`
	Component component `json:"component"`
}

type component struct {
	Type       string     `json:"type"`
	Ref        string     `json:"bom-ref"`
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	PURL       string     `json:"purl"`
	Hashes     []bomHash  `json:"hashes,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

type bomHash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type dependsOn struct {
	Ref       string   `json:"ref"`
	DependsOn []string `json:"dependsOn,omitempty"`
}

// writeBOM writes what a binary was made from.
func writeBOM(to, binary string, r release) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return fmt.Errorf("read build information: %w", err)
	}
	content, err := os.ReadFile(binary)
	if err != nil {
		return fmt.Errorf("read binary: %w", err)
	}
	out, err := json.MarshalIndent(billOf(info, sha256.Sum256(content), r.version, r.at), "", "  ")
	if err != nil {
		return fmt.Errorf("encode bill of materials: %w", err)
	}
	return write(to, append(out, '\n'))
}

func billOf(info *debug.BuildInfo, sum [sha256.Size]byte, version string, at time.Time) bom {
	self := module(info.Main.Path, version)
	self.Type = "application"
	self.Hashes = []bomHash{{"SHA-256", hex.EncodeToString(sum[:])}}
	for _, s := range info.Settings {
		if s.Key == "GOOS" || s.Key == "GOARCH" || s.Key == "CGO_ENABLED" {
			self.Properties = append(self.Properties, property{"build:" + s.Key, s.Value})
		}
	}
	// The standard library is a part as well, and one with advisories of its own.
	std := module("stdlib", strings.TrimPrefix(info.GoVersion, "go"))
	out := bom{
		Format: "CycloneDX", SpecVersion: "1.5", SerialNumber: serial(sum), Version: 1,
		Metadata:   bomMetadata{Timestamp: at.Format(time.RFC3339), Component: self},
		Components: []component{std},
	}
	for _, d := range info.Deps {
		used := d
		if d.Replace != nil {
			used = d.Replace
		}
		c := module(used.Path, used.Version)
		if used.Sum != "" {
			// Go's own sum, over the names and contents of the module's files.
			c.Properties = []property{{"go:sum", used.Sum}}
		}
		out.Components = append(out.Components, c)
	}
	slices.SortFunc(out.Components, func(a, b component) int { return strings.Compare(a.Ref, b.Ref) })
	of := dependsOn{Ref: self.Ref}
	for _, c := range out.Components {
		of.DependsOn = append(of.DependsOn, c.Ref)
	}
	// Go records which modules are in a binary, and not which of them wants which.
	out.Dependencies = []dependsOn{of}
	return out
}

func module(path, version string) component {
	purl := "pkg:golang/" + strings.ReplaceAll(strings.ReplaceAll(path, "%", "%25"), "@", "%40") + "@" + strings.ReplaceAll(version, "+", "%2B")
	return component{Type: "library", Ref: purl, Name: path, Version: version, PURL: purl}
}

// serial is a UUID of version 8 made from the binary's sum, so that it is the same
// for the same binary.
func serial(sum [sha256.Size]byte) string {
	b := sum[:16]
	b[6], b[8] = b[6]&0x0f|0x80, b[8]&0x3f|0x80
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
