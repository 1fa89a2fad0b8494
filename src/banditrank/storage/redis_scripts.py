"""What Redis does in one piece: scripts in Lua.

A script runs alone, and the append-only file gets all that it wrote as one transaction (MULTI … EXEC), of
which a restarted server takes all or, if the end is missing, nothing.

Keys, all after the store's prefix:

==================  ==========================================================================================
`schema`            the number of the present schema
`secret`            random bytes
`check`             a random value, new with every check of the store
`numbers`           the number of the latest surface
`surfaces`          hash: name → number
`revisions`         hash: number → revision of the definition
`versions`          hash: number → version of the counts; what is in here exists
`forgotten`         hash: number → time in milliseconds since 1970; rankings that lapsed before are forgotten
`keys`, `revoked`   hashes: id of an API key → JSON list of its fields, and when it was revoked
`N:definitions`     hash of surface N: revision → definition
`N:open`            sorted set: key + ranking of those without an outcome
`N:settled`         sorted set: key + code of the outcome
`N:changes`         stream: the entry VERSION-0 holds the cells, and when they were added
`N:snapshots`       sorted set: "version:when it was saved", by version
`N:sums`            hash: version → cells of the snapshot
`N:histories`       hash: version → history of the snapshot
==================  ==========================================================================================

All scores of rankings are 0, which makes Redis order them by their bytes: by the time at which they lapse.
"""

import struct

# Steps from nothing to the present schema, as in `tables`. Each becomes one script, so that of several who
# take it at once one does.
# KEYS   schema, secret
# ARGV   the schema before, random bytes
MIGRATIONS = (
    """
    redis.call('SET', KEYS[2], ARGV[2])
    """,
    # API keys may expire and be limited to surfaces: versions that ignore it must not open the store.
    "",
)

MIGRATE = """
if (redis.call('GET', KEYS[1]) or '0') ~= ARGV[1] then return 0 end
STEP
redis.call('SET', KEYS[1], ARGV[1] + 1)
return 1
"""

# KEYS   surfaces, revisions, versions, numbers, forgotten
# ARGV   the prefix of all keys: those of a surface have its number, which only the script knows; then a name
CREATE_SURFACE = """
if redis.call('HEXISTS', KEYS[1], ARGV[2]) == 1 then return 0 end
local number = redis.call('INCR', KEYS[4])
redis.call('HSET', KEYS[1], ARGV[2], number)
redis.call('HSET', KEYS[2], number, 1)
redis.call('HSET', KEYS[3], number, 0)
redis.call('HSET', ARGV[1] .. number .. ':definitions', 1, ARGV[3])
if ARGV[4] ~= '' then
    redis.call('HSET', KEYS[3], number, 1)
    redis.call('XADD', ARGV[1] .. number .. ':changes', '1-0', 'cells', ARGV[4], 'at', 0)
end
return number
"""

FIND_SURFACES = """
local names = {ARGV[2]}
if #names == 0 then names = redis.call('HKEYS', KEYS[1]) end
local found = {}
for _, name in ipairs(names) do
    local number = redis.call('HGET', KEYS[1], name)
    if number then
        local revision = redis.call('HGET', KEYS[2], number)
        local definition = redis.call('HGET', ARGV[1] .. number .. ':definitions', revision)
        found[#found + 1] = {number, name, definition, revision}
    end
end
return found
"""

UPDATE_SURFACE = """
local number = redis.call('HGET', KEYS[1], ARGV[2])
if number ~= ARGV[5] or redis.call('HGET', KEYS[2], number) ~= ARGV[4] then return 0 end
local revision = redis.call('HINCRBY', KEYS[2], number, 1)
redis.call('HSET', ARGV[1] .. number .. ':definitions', revision, ARGV[3])
return 1
"""

DELETE_SURFACE = """
local number = redis.call('HGET', KEYS[1], ARGV[2])
if not number then return 0 end
redis.call('HDEL', KEYS[1], ARGV[2])
redis.call('HDEL', KEYS[2], number)
redis.call('HDEL', KEYS[3], number)
redis.call('HDEL', KEYS[5], number)
for _, name in ipairs({'definitions', 'open', 'settled', 'changes', 'snapshots', 'sums', 'histories'}) do
    redis.call('UNLINK', ARGV[1] .. number .. ':' .. name)
end
return 1
"""

VERSIONS = """
return {redis.call('HGETALL', KEYS[1]), redis.call('HGETALL', KEYS[2])}
"""

# Whoever calls assumes which outcomes are new, and has added those up: cells are computed in one place. If he
# is wrong nothing is written, and he is told what is so.
#
# KEYS   versions; of each surface the open, the settled, the changes; at last forgotten
# ARGV   how many surfaces; of each its number and the cells to add; then all entries in one string, which the
#        driver is much sooner done with than with many: of each what `ENTRY` says, key, code of the outcome
#        and ranking; then the time
# Gives  1 if it was written; of each entry 'gone', 'forgotten', 'open', 'new' or the code of the outcome that
#        was there before, with a space between; of each surface the new version or 0

ENTRY = struct.Struct("<HBBBH")
"""Of an entry: the place of its surface, counted from 1; 1 if it is assumed to be new; how many bytes its
key, its code (none if it is open) and its ranking have."""

WRITE = """
local surfaces = tonumber(ARGV[1])
local data = ARGV[2 * surfaces + 2]
local there, since, entries, found, agreed = {}, {}, {}, {}, 1
for place = 1, surfaces do
    there[place] = redis.call('HEXISTS', KEYS[1], ARGV[2 * place]) == 1
    since[place] = tonumber(redis.call('HGET', KEYS[#KEYS], ARGV[2 * place]) or 0)
end
local at = 1
while at <= #data do
    local place, assumed, keys, codes, rankings, start = struct.unpack('<HBBBH', data, at)
    local key = string.sub(data, start, start + keys - 1)
    local code = string.sub(data, start + keys, start + keys + codes - 1)
    at = start + keys + codes + rankings
    local ranking = string.sub(data, at - rankings, at - 1)
    local state = codes == 0 and 'open' or 'new'
    if not there[place] then
        state = 'gone'
    elseif struct.unpack('>I6', key) < since[place] then
        state = 'forgotten'
    else
        -- A code is of digits, and ':' is what comes after '9'.
        local before = redis.call(
            'ZRANGEBYLEX', KEYS[3 * place], '[' .. key, '(' .. key .. ':', 'LIMIT', 0, 1)
        if before[1] then state = string.sub(before[1], keys + 1) end
    end
    if (state == 'new') ~= (assumed == 1) then agreed = 0 end
    found[#found + 1] = state
    entries[#entries + 1] = {place, key .. code, key .. ranking}
end
local states, versions = table.concat(found, ' '), {}
if agreed == 0 then return {0, states, versions} end
for number, entry in ipairs(entries) do
    local place, settled, open = unpack(entry)
    if found[number] == 'open' then
        redis.call('ZADD', KEYS[3 * place - 1], 0, open)
    elseif found[number] == 'new' then
        -- First what needs room: a server that is full refuses only the first thing that a script writes.
        redis.call('ZADD', KEYS[3 * place], 0, settled)
        redis.call('ZREM', KEYS[3 * place - 1], open)
    end
end
for place = 1, surfaces do
    versions[place] = 0
    local cells = ARGV[2 * place + 1]
    if cells ~= '' then
        versions[place] = redis.call('HINCRBY', KEYS[1], ARGV[2 * place], 1)
        local id = versions[place] .. '-0'
        redis.call('XADD', KEYS[3 * place + 1], id, 'cells', cells, 'at', ARGV[2 * surfaces + 3])
    end
end
return {1, states, versions}
"""

# KEYS   versions, snapshots, sums, histories
# ARGV   number, version, cells, when it is saved, history
SAVE_SNAPSHOT = """
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return 0 end
if redis.call('HSETNX', KEYS[3], ARGV[2], ARGV[3]) == 0 then return 0 end
redis.call('HSET', KEYS[4], ARGV[2], ARGV[5])
return redis.call('ZADD', KEYS[2], ARGV[2], ARGV[2] .. ':' .. ARGV[4])
"""

# KEYS   snapshots, sums, histories
# ARGV   the last version
SNAPSHOT = """
local found = redis.call('ZREVRANGEBYSCORE', KEYS[1], ARGV[1], '-inf', 'LIMIT', 0, 1)
if not found[1] then return {} end
local version, saved = string.match(found[1], '(%d+):(%d+)')
return {version, redis.call('HGET', KEYS[2], version), saved, redis.call('HGET', KEYS[3], version)}
"""

# KEYS   versions, settled, changes, snapshots, sums, histories, open, forgotten
# ARGV   number, the time before which all is old, the first key of that time, how many rankings at most:
#        for others not to wait
# Gives  how many rankings are left to be forgotten
FORGET = """
local latest = redis.call('HGET', KEYS[1], ARGV[1])
if not latest then return 0 end
if tonumber(redis.call('HGET', KEYS[8], ARGV[1]) or 0) < tonumber(ARGV[2]) then
    redis.call('HSET', KEYS[8], ARGV[1], ARGV[2])
end
local kept
for _, one in ipairs(redis.call('ZREVRANGE', KEYS[4], 0, -1)) do
    local version, saved = string.match(one, '(%d+):(%d+)')
    if kept then
        redis.call('ZREM', KEYS[4], one)
        redis.call('HDEL', KEYS[5], version)
        redis.call('HDEL', KEYS[6], version)
    elseif tonumber(saved) < tonumber(ARGV[2]) then
        kept = version
    end
end
-- Versions have no gap: it is known how many changes stay, at least the latest.
if kept then redis.call('XTRIM', KEYS[3], 'MAXLEN', math.max(1, latest - kept)) end
local left = 0
for _, rankings in ipairs({KEYS[2], KEYS[7]}) do
    local old = redis.call('ZLEXCOUNT', rankings, '-', '(' .. ARGV[3])
    local portion = math.min(old, tonumber(ARGV[4]))
    if portion > 0 then redis.call('ZREMRANGEBYRANK', rankings, 0, portion - 1) end
    left = left + old - portion
end
return left
"""

REVOKE_KEY = """
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return 0 end
return redis.call('HSETNX', KEYS[2], ARGV[1], ARGV[2])
"""
