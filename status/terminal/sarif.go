package terminal

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/url"
	"strings"

	"github.com/weir-gitops/weir/render/diag"
)

// These types contain the members of a SARIF log that weir writes; see "Static Analysis Results Interchange
// Format (SARIF) Version 2.1.0", an OASIS standard.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool       sarifTool                 `json:"tool"`
		Bases      map[string]sarifDirectory `json:"originalUriBaseIds"`
		ColumnKind string                    `json:"columnKind"`
		Results    []sarifResult             `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name           string      `json:"name"`
		Version        string      `json:"version,omitempty"`
		InformationURI string      `json:"informationUri"`
		Rules          []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID               string             `json:"id"`
		ShortDescription *sarifText         `json:"shortDescription,omitempty"`
		Help             *sarifText         `json:"help,omitempty"`
		Default          sarifConfiguration `json:"defaultConfiguration"`
	}
	sarifConfiguration struct {
		Level string `json:"level"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifDirectory struct {
		Description sarifText `json:"description"`
	}
	sarifResult struct {
		RuleID       string            `json:"ruleId"`
		RuleIndex    int               `json:"ruleIndex"`
		Level        string            `json:"level"`
		Message      sarifText         `json:"message"`
		Locations    []sarifLocation   `json:"locations"`
		Related      []sarifLocation   `json:"relatedLocations,omitempty"`
		Fingerprints map[string]string `json:"partialFingerprints"`
		Properties   sarifProperties   `json:"properties"`
	}
	sarifProperties struct {
		// Paths are the validated paths with this finding.
		Paths []string `json:"paths"`
	}
	sarifLocation struct {
		ID       int            `json:"id,omitempty"`
		Physical sarifPhysical  `json:"physicalLocation"`
		Logical  []sarifLogical `json:"logicalLocations,omitempty"`
		Message  *sarifText     `json:"message,omitempty"`
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
		Region   *sarifRegion  `json:"region,omitempty"`
	}
	sarifArtifact struct {
		URI    string `json:"uri"`
		BaseID string `json:"uriBaseId,omitempty"`
	}
	sarifRegion struct {
		StartLine   int `json:"startLine"`
		StartColumn int `json:"startColumn,omitempty"`
	}
	sarifLogical struct {
		Name string `json:"fullyQualifiedName"`
	}
)

const (
	sarifRoot   = "%SRCROOT%"
	sarifSchema = "https://json.schemastore.org/sarif-2.1.0.json"
	homepage    = "https://github.com/weir-gitops/weir"
)

// SARIF prints findings as a SARIF 2.1.0 log, with files relative to the base %SRCROOT%, the repository's
// root. A finding without a position gets the validated path as its location, because consumers show no
// results without a location.
func SARIF(w io.Writer, version string, findings []diag.Finding) error {
	driver := sarifDriver{Name: "weir", Version: version, InformationURI: homepage, Rules: []sarifRule{}}
	index := map[string]int{}
	results := make([]sarifResult, 0, len(findings))
	for _, f := range findings {
		n, ok := index[f.Code]
		if !ok {
			n = len(driver.Rules)
			index[f.Code] = n
			driver.Rules = append(driver.Rules, ruleOf(f))
		}
		results = append(results, sarifResult{
			RuleID: f.Code, RuleIndex: n, Level: sarifLevel(f.Severity), Message: sarifText{message(f.Diagnostic)},
			Locations: []sarifLocation{{Physical: physical(locationOf(f)), Logical: logical(f.Diagnostic)}},
			Related:   related(f.Related), Properties: sarifProperties{Paths: append([]string{}, f.Paths...)},
			Fingerprints: map[string]string{"weir/v1": fingerprint(f)},
		})
	}
	return JSON(w, sarifLog{Schema: sarifSchema, Version: "2.1.0", Runs: []sarifRun{{
		Tool: sarifTool{driver}, Results: results,
		// The yaml package counts columns in characters, not in bytes.
		ColumnKind: "unicodeCodePoints",
		Bases:      map[string]sarifDirectory{sarifRoot: {sarifText{"The root of the repository."}}},
	}}})
}

func ruleOf(f diag.Finding) sarifRule {
	out := sarifRule{ID: f.Code, Default: sarifConfiguration{sarifLevel(f.Severity)}}
	if r, ok := diag.RuleOf(f.Code); ok {
		out.ShortDescription, out.Help = &sarifText{r.Short + "."}, &sarifText{r.Help}
		out.Default.Level = sarifLevel(r.Severities[0])
	}
	return out
}

func sarifLevel(s diag.Severity) string {
	return map[diag.Severity]string{diag.Error: "error", diag.Warning: "warning", diag.Info: "note"}[s]
}

// message returns the summary and, as a second paragraph, the remedy.
func message(d diag.Diagnostic) string {
	text := d.Summary + "."
	if d.Object != "" && !d.Known() && !strings.Contains(d.Summary, d.Object) {
		text = d.Object + " " + d.Field + ": " + text
	}
	if d.Detail != "" {
		text += "\n\n" + d.Detail
	}
	return CleanText(text)
}

// locationOf returns the location to show for a finding.
func locationOf(f diag.Finding) diag.Position {
	if f.Known() || len(f.Paths) == 0 {
		return f.Position
	}
	return diag.Position{File: f.Paths[0]}
}

func physical(p diag.Position) sarifPhysical {
	out := sarifPhysical{Artifact: sarifArtifact{URI: fileURI(p.File), BaseID: sarifRoot}}
	if strings.HasPrefix(p.File, "/") {
		// The file is neither in a repository nor below the working directory.
		out.Artifact = sarifArtifact{URI: "file://" + fileURI(p.File)}
	}
	if p.Line > 0 {
		out.Region = &sarifRegion{StartLine: p.Line, StartColumn: p.Column}
	}
	return out
}

// fileURI returns a path as a relative reference. It escapes a colon in the first element, which would
// otherwise look like a scheme.
func fileURI(file string) string { return (&url.URL{Path: file}).String() }

func logical(d diag.Diagnostic) []sarifLogical {
	if d.Object == "" {
		return nil
	}
	return []sarifLogical{{strings.TrimSpace(CleanText(d.Object + " " + d.Field))}}
}

func related(list []diag.Related) []sarifLocation {
	var out []sarifLocation
	for _, r := range list {
		if r.Known() {
			out = append(out, sarifLocation{ID: len(out) + 1, Physical: physical(r.Position), Message: &sarifText{CleanText(r.Message)}})
		}
	}
	return out
}

// fingerprint identifies a finding even if lines above it have changed: it contains no line number.
func fingerprint(f diag.Finding) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{f.Code, locationOf(f).File, f.Object, f.Field, cmp.Or(f.Field, f.Summary)}, "\x00")))
	return hex.EncodeToString(sum[:16])
}
