package signature

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
)

// unarmored removes the armor of a signature. The parsers of the libraries search for a block that they
// support, and ignore the text around it. So they could check something else than Git, gpg and ssh-keygen do.
// Here the text must be exactly one block. Only the forms that have headers and a checksum may contain them.
func unarmored(text []byte, kind string, pgp bool) ([]byte, error) {
	unreadable := fmt.Errorf("its %s cannot be read: it is not one block and nothing else", kind)
	if pgp {
		text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
	}
	text, begins := bytes.CutPrefix(text, []byte("-----BEGIN "+kind+"-----\n"))
	text, ends := bytes.CutSuffix(bytes.TrimRight(text, "\n"), []byte("\n-----END "+kind+"-----"))
	if !begins || !ends {
		return nil, unreadable
	}
	if !pgp {
		return strictBase64(text)
	}
	headers, text, ok := bytes.Cut(append([]byte("\n"), text...), []byte("\n\n"))
	if !ok {
		return nil, unreadable
	}
	for line := range bytes.SplitSeq(bytes.TrimPrefix(headers, []byte("\n")), []byte("\n")) {
		if len(line) > 0 && !bytes.Contains(line, []byte(": ")) {
			return nil, unreadable
		}
	}
	content, sum, summed := bytes.Cut(text, []byte("\n="))
	data, err := strictBase64(content)
	if err != nil || !summed {
		return data, err
	}
	if want, err := strictBase64(sum); err != nil || !bytes.Equal(want, crc24(data)) {
		return nil, errors.New("the checksum of its " + kind + " is wrong")
	}
	return data, nil
}

// strictBase64 decodes lines of base64. It accepts only the canonical form of the content.
func strictBase64(text []byte) ([]byte, error) {
	data, err := base64.StdEncoding.Strict().AppendDecode(nil, bytes.ReplaceAll(text, []byte("\n"), nil))
	if err != nil || bytes.ContainsRune(text, '\r') {
		return nil, errors.New("its signature cannot be read: it is not base64")
	}
	return data, nil
}

// crc24 returns the checksum of RFC 9580, section 6.1.
func crc24(data []byte) []byte {
	sum := uint32(0xb704ce)
	for _, b := range data {
		sum ^= uint32(b) << 16
		for range 8 {
			if sum <<= 1; sum&0x1000000 != 0 {
				sum ^= 0x1864cfb
			}
		}
	}
	return []byte{byte(sum >> 16), byte(sum >> 8), byte(sum)}
}
