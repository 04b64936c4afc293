// Package servertest has stand-ins for the parts of the daemon that the control API drives: everything in
// memory, with the visibility and the failures that the interfaces of package server promise, and
// nothing of what the real parts do besides.
package servertest

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"path"
	"slices"
	"sync"
	"time"

	"aimon.at/vfsd/artifact"
	"aimon.at/vfsd/change"
	"aimon.at/vfsd/ctl/server"
	"aimon.at/vfsd/session"
)

// Fake is a daemon in memory. Its exported fields are set before it is used, or by Set.
type Fake struct {
	Now       func() time.Time
	CgroupErr error    // what Enter fails with
	EndErr    error    // what EndToolUse fails with
	Problems  []string // what Check finds
	CheckErr  error
	ListErr   error // what List fails with

	mu         sync.Mutex // guards all below
	sessions   []session.Session
	executions []session.Execution
	toolUses   []session.ToolUse
	views      []artifact.View
	bytes      map[string][]byte
	changed    map[string]bool // content that no longer is what was recorded
	tokens     []artifact.Token
	mounts     []server.Mount
	entered    []string
	seq        int
}

// New returns a daemon without anything in it whose clock stands still.
func New() *Fake {
	at := time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)
	return &Fake{Now: func() time.Time { return at }, bytes: map[string][]byte{}, changed: map[string]bool{}}
}

// Needs returns the fake in all its roles.
func (f *Fake) Needs() server.Needs {
	return server.Needs{Sessions: f, Artifacts: library{f}, Tokens: tokens{f}, Cgroups: f, Mounts: mounts{f}, Checker: f}
}

// Redeemer returns the fake as the gateway needs it.
func (f *Fake) Redeemer() Redeemer { return tokens{f} }

// Redeemer is what a gateway asks.
type Redeemer interface {
	Redeem(ctx context.Context, secret string) (artifact.Token, error)
	Count(ctx context.Context, secret string) (artifact.Token, error)
}

// Library returns the fake's artifacts.
func (f *Fake) Library() server.Artifacts { return library{f} }

// Logger is a logger that says nothing.
func Logger() *slog.Logger { return slog.New(slog.DiscardHandler) }

// AddSession adds a session.
func (f *Fake) AddSession(id string, owner uint32) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sessions = append(f.sessions, session.Session{ID: id, Owner: owner, Source: "/src/" + id, Artifacts: true, CreatedAt: f.Now()})
}

// AddMount adds a mount of a session.
func (f *Fake) AddMount(m server.Mount) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mounts = append(f.mounts, m)
}

// AddArtifact adds a final artifact with content, completing what v leaves empty.
func (f *Fake) AddArtifact(v artifact.View, content string) artifact.View {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seq++
	v.Seq, v.Final, v.Artifact, v.Version, v.CreatedAt = uint64(f.seq), true, true, 1, f.Now()
	v.ID = cmp.Or(v.ID, fmt.Sprintf("01ART%03d", f.seq))
	v.State, v.Reason = cmp.Or(v.State, artifact.Live), cmp.Or(v.Reason, "default of the execution")
	v.Who.Sureness = cmp.Or(v.Who.Sureness, session.None)
	v.File = change.FileID{Dev: 1, Ino: uint64(f.seq)}
	v.Stamp = change.Stamp{Size: int64(len(content)), Mtime: f.Now().UnixNano()}
	f.views = append(f.views, v)
	f.bytes[v.ID] = []byte(content)
	return v
}

// Change makes the content of an artifact another one than was recorded.
func (f *Fake) Change(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.changed[id] = true
}

// Entered returns the "session/toolUse/pid" of every cgroup that was entered.
func (f *Fake) Entered() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.entered)
}

// Tool returns a tool use by its id.
func (f *Fake) Tool(id string) (session.ToolUse, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, t := range f.toolUses {
		if t.ID == id {
			return t, true
		}
	}
	return session.ToolUse{}, false
}

// Enter implements server.Cgroups.
func (f *Fake) Enter(_ context.Context, sessionID, toolUseID string, pid int) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.entered = append(f.entered, fmt.Sprintf("%s/%s/%d", sessionID, toolUseID, pid))
	return "/vfsd/" + toolUseID, f.CgroupErr
}

// Set changes exported fields of a fake that is in use.
func (f *Fake) Set(change func(*Fake)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

// Check implements server.Checker.
func (f *Fake) Check(_ context.Context, found func(string)) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.Problems {
		found(p)
	}
	return f.CheckErr
}

type mounts struct{ *Fake }

func (m mounts) Mount(_ context.Context, s server.MountSpec) (server.Mount, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v := server.Mount{Mountpoint: s.Mountpoint, Source: s.Source, SessionID: cmp.Or(s.SessionID, path.Base(s.Mountpoint)), Since: m.Now()}
	if s.Owner != nil {
		v.Owner = *s.Owner
	}
	if s.Artifacts != nil {
		v.Artifacts = *s.Artifacts
	}
	for _, o := range m.mounts {
		if o.Mountpoint == v.Mountpoint {
			return server.Mount{}, fmt.Errorf("%w: %s is mounted already: unmount it first", session.ErrConflict, v.Mountpoint)
		}
	}
	m.mounts = append(m.mounts, v)
	return v, nil
}

func (m mounts) Unmount(_ context.Context, mountpoint string) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := len(m.mounts)
	m.mounts = slices.DeleteFunc(m.mounts, func(v server.Mount) bool { return v.Mountpoint == mountpoint })
	if len(m.mounts) == n {
		return false, fmt.Errorf("mount %s: %w", mountpoint, session.ErrNotFound)
	}
	return false, nil
}

func (m mounts) Mounts() []server.Mount {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.mounts)
}

type library struct{ *Fake }

func (l library) List(_ context.Context, q artifact.ListQuery) (artifact.Listing, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out artifact.Listing
	for _, v := range l.views {
		if v.SessionID != q.SessionID || v.Seq <= q.From || q.ExecutionID != "" && v.Who.ExecutionID != q.ExecutionID ||
			q.ToolUseID != "" && v.Who.ToolUseID != q.ToolUseID || !q.All && (v.State != artifact.Live || v.Removed) {
			continue
		}
		if q.Limit > 0 && len(out.Views) == q.Limit {
			out.NextFrom = out.Views[q.Limit-1].Seq
			break
		}
		out.Views = append(out.Views, v)
	}
	return out, l.ListErr
}

func (l library) Show(_ context.Context, id string) (artifact.View, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, v := range l.views {
		if v.ID == id {
			return v, nil
		}
	}
	return artifact.View{}, fmt.Errorf("artifact %s: %w", id, session.ErrNotFound)
}

func (l library) Open(ctx context.Context, id string) (artifact.Content, error) {
	v, err := l.Show(ctx, id)
	if err != nil {
		return nil, err
	}
	if v.State != artifact.Live {
		return nil, fmt.Errorf("%w: %s", artifact.ErrGone, string(v.State))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return &content{Reader: bytes.NewReader(l.bytes[id]), fake: l.Fake, view: v}, nil
}

func (l library) Add(_ context.Context, sessionID, p, toolUseID string) (artifact.View, error) {
	v := artifact.View{Entry: artifact.Entry{SessionID: sessionID, Names: []string{p}, Reason: "added by hand"}}
	v.Who.ToolUseID = toolUseID
	return l.AddArtifact(v, "added"), nil
}

func (l library) Remove(ctx context.Context, id string) (artifact.View, error) {
	l.mu.Lock()
	for i := range l.views {
		if l.views[i].ID == id {
			l.views[i].Removed = true
		}
	}
	l.mu.Unlock()
	return l.Show(ctx, id)
}

func (l library) Versions(_ context.Context, sessionID, p string) ([]artifact.View, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []artifact.View
	for _, v := range l.views {
		if v.SessionID == sessionID && v.Path() == p {
			out = append(out, v)
		}
	}
	return out, nil
}

type content struct {
	*bytes.Reader
	fake *Fake
	view artifact.View
}

func (c *content) View() artifact.View { return c.view }
func (c *content) ModTime() time.Time  { return time.Unix(0, c.view.Stamp.Mtime) }
func (c *content) Stamp() change.Stamp { return c.view.Stamp }
func (c *content) Close() error        { return nil }

func (c *content) Verify() error {
	c.fake.mu.Lock()
	defer c.fake.mu.Unlock()
	if c.fake.changed[c.view.ID] {
		return fmt.Errorf("%w: %s", artifact.ErrGone, "replaced")
	}
	return nil
}

func hash(secret string) [32]byte { return sha256.Sum256([]byte(secret)) }
