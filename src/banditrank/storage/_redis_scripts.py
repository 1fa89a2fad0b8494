"""Lua scripts of the Redis store, and its keys.

Redis runs a script without interleaving other commands, and appends its writes to the append-only file as one
transaction (MULTI … EXEC): a restarted server applies all of them or, if the end is missing, none.

Keys, each with the prefix of the store:

==================  ==========================================================================================
`schema`            number of applied migrations
`secret`            random bytes
`check`             random value, replaced by every check of the store
`numbers`           id of the latest surface
`surfaces`          hash: name → surface id
`revisions`         hash: surface id → revision of the definition
`versions`          hash: surface id → version of the counts; has all surfaces that exist
`forgotten`         hash: surface id → time in milliseconds since 1970 before which impressions are pruned
`keys`, `revoked`   hashes: id of an API key → JSON list of its fields, and the time at which it was revoked
`N:definitions`     hash of surface N: revision → definition
`N:open`            sorted set: key + ranking of each impression without a final outcome
`N:settled`         sorted set: key + code of each outcome, final or not
`N:changes`         stream: entry VERSION-0 has the cells, and the time of the commit
`N:snapshots`       sorted set: "version:time at which it was saved", by version
`N:sums`            hash: version → cells of the snapshot
`N:time_series`     hash: the fields `version` and `data`
==================  ==========================================================================================

All members of `N:open` and `N:settled` have the score 0, so that Redis sorts them by their bytes: by expiry.
"""

import struct

# Each step is run as one script, so that only one of several processes applies it. A released step is never
# changed, because the steps after it migrate the stores of older versions.
# KEYS   schema, secret
# ARGV   number of applied migrations, random bytes, prefix of all keys
MIGRATIONS = (
    """
    redis.call('SET', KEYS[2], ARGV[2])
    """,
    # API keys may expire and be limited to surfaces: versions that ignore it must not open the store.
    "",
    # The time series was part of each snapshot, in `N:histories`: version → time series.
    """
    for _, surface_id in ipairs(redis.call('HVALS', ARGV[3] .. 'surfaces')) do
        local prefix = ARGV[3] .. surface_id
        for _, snapshot in ipairs(redis.call('ZREVRANGE', prefix .. ':snapshots', 0, -1)) do
            local version = string.match(snapshot, '%d+')
            local history = redis.call('HGET', prefix .. ':histories', version)
            if history and history ~= '' then
                redis.call('HSET', prefix .. ':time_series', 'version', version, 'data', history)
                break
            end
        end
        redis.call('UNLINK', prefix .. ':histories')
    end
    """,
)

MIGRATE = """
if (redis.call('GET', KEYS[1]) or '0') ~= ARGV[1] then return 0 end
STEP
redis.call('SET', KEYS[1], ARGV[1] + 1)
return 1
"""

# KEYS   surfaces, revisions, versions, numbers, forgotten
# ARGV   prefix of all keys, for the keys of a surface whose id only the script knows; then a name
CREATE_SURFACE = """
if redis.call('HEXISTS', KEYS[1], ARGV[2]) == 1 then return 0 end
local surface_id = redis.call('INCR', KEYS[4])
redis.call('HSET', KEYS[1], ARGV[2], surface_id)
redis.call('HSET', KEYS[2], surface_id, 1)
redis.call('HSET', KEYS[3], surface_id, 0)
redis.call('HSET', ARGV[1] .. surface_id .. ':definitions', 1, ARGV[3])
if ARGV[4] ~= '' then
    redis.call('HSET', KEYS[3], surface_id, 1)
    redis.call('XADD', ARGV[1] .. surface_id .. ':changes', '1-0', 'cells', ARGV[4], 'at', 0)
end
return surface_id
"""

FIND_SURFACES = """
local names = {ARGV[2]}
if #names == 0 then names = redis.call('HKEYS', KEYS[1]) end
local found = {}
for _, name in ipairs(names) do
    local surface_id = redis.call('HGET', KEYS[1], name)
    if surface_id then
        local revision = redis.call('HGET', KEYS[2], surface_id)
        local definition = redis.call('HGET', ARGV[1] .. surface_id .. ':definitions', revision)
        found[#found + 1] = {surface_id, name, definition, revision}
    end
end
return found
"""

UPDATE_SURFACE = """
local surface_id = redis.call('HGET', KEYS[1], ARGV[2])
if surface_id ~= ARGV[5] or redis.call('HGET', KEYS[2], surface_id) ~= ARGV[4] then return 0 end
local revision = redis.call('HINCRBY', KEYS[2], surface_id, 1)
redis.call('HSET', ARGV[1] .. surface_id .. ':definitions', revision, ARGV[3])
return 1
"""

# Replicas of the previous version write `N:histories` until they are replaced.
DELETE_SURFACE = """
local surface_id = redis.call('HGET', KEYS[1], ARGV[2])
if not surface_id then return 0 end
redis.call('HDEL', KEYS[1], ARGV[2])
redis.call('HDEL', KEYS[2], surface_id)
redis.call('HDEL', KEYS[3], surface_id)
redis.call('HDEL', KEYS[5], surface_id)
local names = {
    'definitions', 'open', 'settled', 'changes', 'snapshots', 'sums', 'time_series', 'histories'}
for _, name in ipairs(names) do
    redis.call('UNLINK', ARGV[1] .. surface_id .. ':' .. name)
end
return 1
"""

VERSIONS = """
return {redis.call('HGETALL', KEYS[1]), redis.call('HGETALL', KEYS[2])}
"""

# The caller assumes which outcomes are stored, and sends the merged outcomes and the sum of their cells,
# which only Python computes. If it is wrong nothing is written, and the reply says what is stored.
#
# KEYS   versions; for each surface its open, settled and changes; forgotten
# ARGV   number of surfaces; for each its id and the cells to add; all events in one string, which the driver
#        sends faster than one string per event: for each `EVENT_HEADER`, key, code of the outcome that is
#        assumed to be stored, code of the outcome to write, ranking; time of the commit
# Reply  1 if it was written; the state of each event, separated by spaces: 'deleted', 'pruned', '-' if no
#        outcome is stored, or the code of the stored outcome; for each surface its new version, or 0

EVENT_HEADER = struct.Struct("<HBBHHH")
"""Header of an event: index of its surface, from 1; whether it has an outcome; lengths of its key, of the
code that is assumed to be stored (0 for none), of the code to write (0 for nothing) and of its ranking."""

WRITE = """
local n_surfaces = tonumber(ARGV[1])
local data = ARGV[2 * n_surfaces + 2]
local exists, pruned_before, events, states, is_right = {}, {}, {}, {}, true
for index = 1, n_surfaces do
    exists[index] = redis.call('HEXISTS', KEYS[1], ARGV[2 * index]) == 1
    pruned_before[index] = tonumber(redis.call('HGET', KEYS[#KEYS], ARGV[2 * index]) or 0)
end
local offset = 1
while offset <= #data do
    local index, has_outcome, key_size, stored_size, code_size, ranking_size, start =
        struct.unpack('<HBBHHH', data, offset)
    local key = string.sub(data, start, start + key_size - 1)
    start = start + key_size
    local assumed = string.sub(data, start, start + stored_size - 1)
    start = start + stored_size
    local code = string.sub(data, start, start + code_size - 1)
    offset = start + code_size + ranking_size
    local ranking = string.sub(data, offset - ranking_size, offset - 1)
    local state, may_write = '-', false
    if not exists[index] then
        state = 'deleted'
    elseif struct.unpack('>I6', key) < pruned_before[index] then
        state = 'pruned'
    else
        may_write = true
        -- A code has only digits, '*', '+', ',' and '.', and ':' is the byte after '9'.
        local stored = redis.call(
            'ZRANGEBYLEX', KEYS[3 * index], '[' .. key, '(' .. key .. ':', 'LIMIT', 0, 1)
        if stored[1] then state = string.sub(stored[1], key_size + 1) end
        local found = stored[1] and state or ''
        if has_outcome == 1 and found ~= assumed then is_right = false end
    end
    if code_size > 0 and not may_write then is_right = false end
    states[#states + 1] = state
    events[#events + 1] = {index, has_outcome, key, assumed, code, ranking}
end
local versions = {}
if not is_right then return {0, table.concat(states, ' '), versions} end
for number, event in ipairs(events) do
    local index, has_outcome, key, assumed, code, ranking = unpack(event)
    local is_final = string.match(code, '^[%d.]')
    -- The command that needs memory is first: a full server rejects only the first write of a script.
    if code ~= '' and code ~= assumed then
        redis.call('ZADD', KEYS[3 * index], 0, key .. code)
        if assumed ~= '' then redis.call('ZREM', KEYS[3 * index], key .. assumed) end
    end
    if is_final then
        redis.call('ZREM', KEYS[3 * index - 1], key .. ranking)
    elseif code ~= '' or (has_outcome == 0 and string.match(states[number], '^[*+-]')) then
        redis.call('ZADD', KEYS[3 * index - 1], 0, key .. ranking)
    end
end
for index = 1, n_surfaces do
    versions[index] = 0
    local cells = ARGV[2 * index + 1]
    if cells ~= '' then
        versions[index] = redis.call('HINCRBY', KEYS[1], ARGV[2 * index], 1)
        local id = versions[index] .. '-0'
        redis.call('XADD', KEYS[3 * index + 1], id, 'cells', cells, 'at', ARGV[2 * n_surfaces + 3])
    end
end
return {1, table.concat(states, ' '), versions}
"""

# KEYS   versions, snapshots, sums
# ARGV   surface id, version, cells, time at which it is saved
SAVE_SNAPSHOT = """
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return 0 end
if redis.call('HSETNX', KEYS[3], ARGV[2], ARGV[3]) == 0 then return 0 end
return redis.call('ZADD', KEYS[2], ARGV[2], ARGV[2] .. ':' .. ARGV[4])
"""

# KEYS   snapshots, sums
# ARGV   maximum version
SNAPSHOT = """
local found = redis.call('ZREVRANGEBYSCORE', KEYS[1], ARGV[1], '-inf', 'LIMIT', 0, 1)
if not found[1] then return {} end
local version, saved = string.match(found[1], '(%d+):(%d+)')
return {version, redis.call('HGET', KEYS[2], version), saved}
"""

# KEYS   versions, time_series
# ARGV   surface id, version, data
SAVE_TIME_SERIES = """
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return 0 end
local stored = redis.call('HGET', KEYS[2], 'version')
if stored and tonumber(stored) >= tonumber(ARGV[2]) then return 0 end
redis.call('HSET', KEYS[2], 'version', ARGV[2], 'data', ARGV[3])
return 1
"""

# KEYS   versions, settled, changes, snapshots, sums, open, forgotten
# ARGV   surface id, time before which all is pruned, smallest key of that time, maximum number of impressions
#        to remove from each set: limits the time that other clients wait
# Reply  number of impressions that are left to be pruned
PRUNE = """
local latest = redis.call('HGET', KEYS[1], ARGV[1])
if not latest then return 0 end
if tonumber(redis.call('HGET', KEYS[7], ARGV[1]) or 0) < tonumber(ARGV[2]) then
    redis.call('HSET', KEYS[7], ARGV[1], ARGV[2])
end
local kept
for _, snapshot in ipairs(redis.call('ZREVRANGE', KEYS[4], 0, -1)) do
    local version, saved = string.match(snapshot, '(%d+):(%d+)')
    if kept then
        redis.call('ZREM', KEYS[4], snapshot)
        redis.call('HDEL', KEYS[5], version)
    elseif tonumber(saved) < tonumber(ARGV[2]) then
        kept = version
    end
end
-- Versions have no gap, so that their difference is the number of changes to keep: at least the latest.
if kept then redis.call('XTRIM', KEYS[3], 'MAXLEN', math.max(1, latest - kept)) end
local left = 0
for _, impressions in ipairs({KEYS[2], KEYS[6]}) do
    local old = redis.call('ZLEXCOUNT', impressions, '-', '(' .. ARGV[3])
    local removed = math.min(old, tonumber(ARGV[4]))
    if removed > 0 then redis.call('ZREMRANGEBYRANK', impressions, 0, removed - 1) end
    left = left + old - removed
end
return left
"""

REVOKE_KEY = """
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return 0 end
return redis.call('HSETNX', KEYS[2], ARGV[1], ARGV[2])
"""
