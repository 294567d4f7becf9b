package files

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// KeyBytes is the length of a key.
const KeyBytes = 32

// OpenKey is like ReadKey, but creates a missing file and its directory.
func OpenKey(file, what, lost string) ([]byte, error) {
	key, err := ReadKey(file, what, lost)
	if errors.Is(err, fs.ErrNotExist) {
		return create(file, what)
	}
	return key, err
}

// ReadKey reads the key from a file with a key in base64. Errors contain what, such as "digest key", and
// lost, the consequence of removing a file without a valid key.
func ReadKey(file, what, lost string) ([]byte, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", what, err)
	}
	key := decode(string(text))
	if key == nil {
		return nil, fmt.Errorf("read %s: %s does not hold %d bytes in base64; remove it, and %s", what, file, KeyBytes, lost)
	}
	return key, nil
}

// decode returns the key in a text, or nil.
func decode(text string) []byte {
	key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
	if err != nil || len(key) != KeyBytes {
		return nil
	}
	return key
}

// ReadKeys reads the keys in a file that a person wrote, one per line in base64. The file must contain at
// least one.
func ReadKeys(file string) (keys [][]byte, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(strings.TrimSpace(string(text)) + "\n") {
		key := decode(line)
		if key == nil {
			return nil, fmt.Errorf("line %d of %s does not hold %d bytes in base64", len(keys)+1, file, KeyBytes)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

func create(file, what string) ([]byte, error) {
	key := make([]byte, KeyBytes)
	_, err := rand.Read(key)
	if err == nil {
		err = WriteKey(file, key)
	}
	if err != nil {
		return nil, fmt.Errorf("make %s: %w", what, err)
	}
	return key, nil
}

// WriteKey writes a key to a file, and creates its directory if necessary.
func WriteKey(file string, key []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	return Write(file, []byte(base64.StdEncoding.EncodeToString(key)+"\n"))
}
