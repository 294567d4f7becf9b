package awsemu

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// stateSchema names the format of saved state.
const stateSchema = "awsemu/v1"

type savedState struct {
	Schema string
	Now    time.Time
	State  *state
}

// Save writes the whole state as JSON: resources, timers and client tokens, but not recorded calls, faults
// or the content of token buckets. The state contains user data, so keep it confidential.
func (s *Server) Save(w io.Writer) error {
	s.mu.Lock()
	data, err := json.Marshal(savedState{Schema: stateSchema, Now: s.world.Now, State: s.state})
	s.mu.Unlock()
	if err != nil {
		return fmt.Errorf("save state: %w", err)
	}
	if _, err := w.Write(append(data, '\n')); err != nil {
		return fmt.Errorf("save state: %w", err)
	}
	return nil
}

// Load replaces the whole state by a saved one. The next request makes changes that became due in between.
// After an error the state is unchanged.
func (s *Server) Load(r io.Reader) error {
	dec := json.NewDecoder(r)
	dec.DisallowUnknownFields()
	saved := savedState{State: newState()}
	if err := dec.Decode(&saved); err != nil {
		return fmt.Errorf("load state: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("load state: text after the end")
	}
	if saved.Schema != stateSchema {
		return fmt.Errorf("load state: schema %q, want %q", saved.Schema, stateSchema)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.check(saved.State); err != nil {
		return fmt.Errorf("load state: %w", err)
	}
	s.world.Now = saved.Now
	s.use(saved.State)
	return nil
}

// use makes a state that was read from JSON the server's state.
func (s *Server) use(st *state) {
	s.state, s.world.State = st, &st.State
	st.Restored()
	for _, r := range s.state.Regions {
		s.join(r)
	}
	s.snapshot = map[string][]byte{}
}

// restoreState restores a marshalled state.
func (s *Server) restoreState(data []byte) error {
	st := newState()
	if err := json.Unmarshal(data, st); err != nil {
		return err
	}
	s.use(st)
	return nil
}

// check returns an error if the state would break the emulator later.
func (s *Server) check(st *state) error {
	if st == nil || st.Accounts == nil || st.Regions == nil || st.Keys == nil {
		return errors.New("the state is not complete")
	}
	for _, t := range st.Timers {
		if s.timers[t.Kind] == nil {
			return fmt.Errorf("unknown timer %q", t.Kind)
		}
	}
	for key, r := range st.Regions {
		if r == nil || key != r.Account+"/"+r.Name {
			return fmt.Errorf("region %q is not whole", key)
		}
	}
	for key, a := range st.Accounts {
		if a == nil || key != a.ID {
			return fmt.Errorf("account %q is not whole", key)
		}
	}
	return nil
}
