package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// file is one in an archive.
type file struct {
	name, from string
	mode       int64
}

// writeArchive writes files as a gzipped tar that depends on nothing but their
// names, contents and modes, and on at.
func writeArchive(to string, files []file, at time.Time) error {
	var out bytes.Buffer
	// The header of gzip holds neither a name nor a time.
	zip, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return fmt.Errorf("write archive: %w", err)
	}
	archive := tar.NewWriter(zip)
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	for _, f := range files {
		content, err := os.ReadFile(f.from)
		if err != nil {
			return fmt.Errorf("write archive: %w", err)
		}
		header := &tar.Header{
			Typeflag: tar.TypeReg, Name: f.name, Size: int64(len(content)), Mode: f.mode, ModTime: at, Format: tar.FormatUSTAR, Uname: "root", Gname: "root",
		}
		if err := archive.WriteHeader(header); err != nil {
			return fmt.Errorf("write archive: %w", err)
		}
		if _, err := archive.Write(content); err != nil {
			return fmt.Errorf("write archive: %w", err)
		}
	}
	if err := archive.Close(); err != nil {
		return fmt.Errorf("write archive: %w", err)
	}
	if err := zip.Close(); err != nil {
		return fmt.Errorf("write archive: %w", err)
	}
	return write(to, out.Bytes())
}

// sums is the name of the file with the SHA-256 sums, as sha256sum -c reads it.
const sums = "SHA256SUMS"

// writeSums writes the sums of all files in dir.
func writeSums(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("write sums: %w", err)
	}
	var out bytes.Buffer
	for _, e := range entries { // by name
		content, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return fmt.Errorf("write sums: %w", err)
		}
		fmt.Fprintf(&out, "%x  %s\n", sha256.Sum256(content), e.Name())
	}
	return write(filepath.Join(dir, sums), out.Bytes())
}

func write(name string, content []byte) error {
	if err := os.WriteFile(name, content, 0o644); err != nil { //nolint:gosec // what is released is for everybody
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}
