// Package keyfile keeps a random key in a file: it is made once, and read ever after.
package keyfile

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/weir-gitops/weir/cmd/weir/internal/atomicfile"
)

// Bytes is how long a key is.
const Bytes = 32

// Open is Read, and makes file and directory where there are none.
func Open(file, what, lost string) ([]byte, error) {
	key, err := Read(file, what, lost)
	if errors.Is(err, fs.ErrNotExist) {
		return create(file, what)
	}
	return key, err
}

// Read reads the key in a file, which holds it in base64. Errors name what the key
// is, such as "digest key", and lost is what becomes of removing a file that holds
// none.
func Read(file, what, lost string) ([]byte, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", what, err)
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(key) != Bytes {
		return nil, fmt.Errorf("read %s: %s does not hold %d bytes in base64; remove it, and %s", what, file, Bytes, lost)
	}
	return key, nil
}

func create(file, what string) ([]byte, error) {
	key := make([]byte, Bytes)
	_, err := rand.Read(key)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(file), 0o700)
	}
	if err == nil {
		err = atomicfile.Write(file, []byte(base64.StdEncoding.EncodeToString(key)+"\n"))
	}
	if err != nil {
		return nil, fmt.Errorf("make %s: %w", what, err)
	}
	return key, nil
}
