package intent

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
)

// UserDataLimit is the maximum size of user data in EC2, in bytes before base64.
const UserDataLimit = 16384

// plainLimit bounds the size after unpacking, because 16 KiB of gzip can expand a thousandfold.
const plainLimit = 4 << 20

// UserData is bootstrap data before base64. Text may contain placeholders, which the answer to Cluster fills.
type UserData struct {
	Text string `json:"-"`
	// Format is cloud-config, ignition, mime, toml, shell or powershell.
	Format string `json:"format,omitempty"`
	// Merged means that EKS parses the text and adds its own parts, as it does for a nodegroup whose image it
	// chooses.
	Merged bool `json:"merged,omitempty"`
	// Cluster is set if Text has placeholders.
	Cluster Lookup `json:"cluster,omitzero"`
	// FetchesToken means that the machine fetches its join token from a parameter that weir maintains. Text
	// then has the placeholders for the parameter's name and region.
	FetchesToken bool `json:"fetchesToken,omitempty"`
	// Secret is true if Text contains a secret, for example a join token.
	Secret bool `json:"secret,omitempty"`
	// Mark identifies how Text was made if it contains decrypted values or secret variables. Texts with equal
	// marks are equal if their secrets are equal. Mark itself is not secret. It is empty if Text contains no
	// such secret.
	Mark string `json:"-"`
	// Concealed means that a plan shows no parts of Text. Text replaces a text that contains secrets, and its
	// parts would confirm a guess of one of these lines.
	Concealed bool `json:"-"`
	// AnySize disables the size check of Text, whose error would reveal the length of secrets. It is set for
	// plans of pull requests.
	AnySize bool `json:"-"`
}

// Placeholders in UserData.Text. They start and end with a NUL byte. YAML cannot contain one, so no manifest
// can contain a placeholder.
const (
	PlaceholderEndpoint    = "\x00weir:apiServerEndpoint\x00"
	PlaceholderCA          = "\x00weir:certificateAuthority\x00"
	PlaceholderServiceCIDR = "\x00weir:serviceCIDR\x00"
	// The target's policy provides the values of these placeholders.
	PlaceholderJoinParameter = "\x00weir:joinParameter\x00"
	PlaceholderRegion        = "\x00weir:region\x00"
)

// Encode returns the bytes to send to EC2 for text, which is u.Text with its placeholders filled. It
// compresses a text that is too long if the program that reads it can unpack gzip, as cloud-init and nodeadm
// can. Ignition, Bottlerocket, Windows and EKS cannot. If the bytes exceed UserDataLimit, tooLarge says by
// how much, without quoting them. Otherwise it is empty.
func (u UserData) Encode(text string) (raw []byte, tooLarge string) {
	if len(text) <= UserDataLimit {
		return []byte(text), ""
	}
	summary := fmt.Sprintf("the user data has %d bytes", len(text))
	if !u.Merged && (u.Format == "cloud-config" || u.Format == "mime" || u.Format == "shell") {
		if raw = compress(text); len(raw) <= UserDataLimit {
			return raw, ""
		}
		summary += fmt.Sprintf(", and %d compressed", len(raw))
	}
	return nil, fmt.Sprintf("%s; EC2 allows %d", summary, UserDataLimit)
}

// DecodeUserData reverses Encode. It returns invalid or too large gzip data unchanged.
func DecodeUserData(raw []byte) string {
	if !bytes.HasPrefix(raw, []byte("\x1f\x8b")) {
		return string(raw)
	}
	r, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		return string(raw)
	}
	plain, err := io.ReadAll(io.LimitReader(r, plainLimit+1))
	if err != nil || len(plain) > plainLimit {
		return string(raw)
	}
	return string(plain)
}

// compress writes gzip without a name or a time. Other versions of the compressor may produce other bytes for
// the same text. So weir must not compare these bytes, but the results of DecodeUserData.
func compress(text string) []byte {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err == nil {
		_, err = io.WriteString(w, text)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		panic("compress into memory: " + err.Error())
	}
	return b.Bytes()
}
