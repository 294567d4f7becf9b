package awsemu

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"
)

// state is everything that survives a restart. It is saved as JSON.
type state struct {
	Counter  uint64 // ids handed out so far
	TimerSeq uint64
	Timers   timerHeap
	Accounts map[string]*account
	Regions  map[string]*region // by account/region
	Keys     map[string]*sessionKey
}

func newState() *state {
	return &state{
		Accounts: map[string]*account{},
		Regions:  map[string]*region{},
		Keys:     map[string]*sessionKey{},
	}
}

// account holds what is not regional.
type account struct {
	ID               string
	Roles            map[string]*role
	InstanceProfiles map[string]*instanceProfile
	srv              *Server
}

// region is one account's part of one region, with the state of each service.
type region struct {
	Account     string
	Name        string
	EC2         ec2State
	SSM         ssmState
	KMS         kmsState
	AutoScaling asgState
	EKS         eksState
	Tokens      map[string]*clientToken

	srv     *Server
	zoneIDs map[string]string // by zone
}

// now is the emulator's time: the clock's, or in a timer the time it was due.
func (r *region) now() time.Time { return r.srv.now }

// timings are the server's durations.
func (r *region) timings() Timings { return r.srv.timings }

// account is the account that the region belongs to.
func (r *region) account() *account { return r.srv.account(r.Account) }

// arn builds an ARN in this account and region.
func (r *region) arn(service, resource string) string {
	return "arn:" + partition(r.Name) + ":" + service + ":" + r.Name + ":" + r.Account + ":" + resource
}

// partition is the AWS partition of a region.
func partition(region string) string {
	switch {
	case strings.HasPrefix(region, "cn-"):
		return "aws-cn"
	case strings.HasPrefix(region, "us-gov-"):
		return "aws-us-gov"
	}
	return "aws"
}

// region returns an account's region, seeded on first use.
func (s *Server) region(accountID, name string) *region {
	key := accountID + "/" + name
	if r := s.state.Regions[key]; r != nil {
		return r
	}
	r := &region{Account: accountID, Name: name, Tokens: map[string]*clientToken{}, srv: s}
	s.state.Regions[key] = r
	s.seedRegion(r)
	return r
}

// account returns an account, seeded on first use.
func (s *Server) account(id string) *account {
	if a := s.state.Accounts[id]; a != nil {
		return a
	}
	a := &account{ID: id, srv: s}
	s.state.Accounts[id] = a
	s.seedAccount(a)
	return a
}

// newID returns an identifier of AWS's shape: prefix, dash, 17 hexadecimal
// digits. Ids derive from a counter, so the same calls give the same ids.
func (r *region) newID(prefix string) string {
	return prefix + "-" + r.newHex(prefix, 17)
}

// newHex returns n (at most 64) hexadecimal digits, different on each call.
func (r *region) newHex(kind string, n int) string {
	r.srv.state.Counter++
	return hashHex(fmt.Sprintf("%s|%s|%s|%d", kind, r.Account, r.Name, r.srv.state.Counter), n)
}

// newUUID returns an identifier of the shape of a UUID.
func (r *region) newUUID(kind string) string {
	return uuidShape(r.newHex(kind, 32))
}

// seedID returns an id for something that every emulator has, the same in all of
// them and whatever was called before.
func (r *region) seedID(prefix, name string) string {
	return prefix + "-" + hashHex("seed|"+prefix+"|"+r.Account+"|"+r.Name+"|"+name, 17)
}

func uuidShape(h string) string {
	return h[:8] + "-" + h[8:12] + "-4" + h[13:16] + "-a" + h[17:20] + "-" + h[20:32]
}

func hashHex(text string, n int) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])[:n]
}
